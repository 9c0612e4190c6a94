/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tests in C++: TEST(name) { ... } registers a function, CHECK(expression) ends it. Output is TAP. */
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

struct failure {
	std::string text;
};

struct test_case {
	const char *name;
	void (*function)();
};

inline std::vector<test_case> &test_cases()
{
	static std::vector<test_case> cases;
	return cases;
}

struct test_registration {
	test_registration(const char *name, void (*function)())
	{
		test_cases().push_back({ name, function });
	}
};

#define TEST(name)                                            \
	static void name();                                   \
	static const test_registration name##_(#name, &name); \
	static void name()

#define CHECK_STRING_(x) #x
#define CHECK_STRING(x)	 CHECK_STRING_(x)
#define CHECK(expression)                                                                      \
	do {                                                                                   \
		if (!(expression))                                                             \
			throw failure{ __FILE__ ":" CHECK_STRING(__LINE__) ": " #expression    \
									   " does not hold" }; \
	} while (0)

/* The text of the exception of type E that the statement throws. */
#define CHECK_THROWS(E, statement)                                                     \
	([&]() -> E {                                                                  \
		try {                                                                  \
			statement;                                                     \
		} catch (const E &thrown) {                                            \
			return thrown;                                                 \
		}                                                                      \
		throw failure{ __FILE__ ":" CHECK_STRING(__LINE__) ": " #statement     \
								   " throws no " #E }; \
	}())

/* Empty: it passed. */
inline std::string outcome(const test_case &test)
{
	try {
		test.function();
	} catch (const failure &f) {
		return f.text;
	} catch (const std::exception &e) {
		return std::string("exception: ") + e.what();
	}
	return "";
}

int main()
{
	int n = 0, failed = 0;

	std::printf("1..%zu\n", test_cases().size());
	for (const test_case &test : test_cases()) {
		std::string text = outcome(test);

		std::printf("%sok %d - %s\n", text.empty() ? "" : "not ", ++n, test.name);
		if (!text.empty())
			std::printf("# %s\n", text.c_str());
		failed += !text.empty();
	}
	return failed ? 1 : 0;
}

#endif
