/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Shared by the tests of the emulation: cmocka, and functions with a defect in a child process. */
#ifndef CUDA_HOST_SELF_HPP
#define CUDA_HOST_SELF_HPP

#include <cuda_runtime.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

/* The checks of this build; the compiler's macros do not tell which AddressSanitizer it is. */
#ifdef CUDA_HOST_ASAN
enum { CHECKED_BY_ITSELF = 0, CHECKED_BY_ASAN = 1, CHECKED_BY_TSAN = 0 };
#elif defined(CUDA_HOST_TSAN)
enum { CHECKED_BY_ITSELF = 0, CHECKED_BY_ASAN = 0, CHECKED_BY_TSAN = 1 };
#else
enum { CHECKED_BY_ITSELF = 1, CHECKED_BY_ASAN = 0, CHECKED_BY_TSAN = 0 };
#endif

/* The call succeeds. In a child cmocka would go on with the next test. */
#define done(call) check_done((call), __FILE__, __LINE__)
static bool in_child;
static inline void check_done(int err, const char *file, int line)
{
	if (!err)
		return;
	fprintf(stderr, "%s:%d: error %d\n", file, line, err);
	if (in_child)
		_exit(3);
	_fail(file, line);
}

/* Runs f in a child; returns what it has written to stderr, and whether it has ended well. */
static inline std::string output_of(void (*f)(void), bool *well)
{
	std::string text;
	char part[4096];
	int ends[2], status;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (!pid) {
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		alarm(60);
		in_child = true;
		f();
		/* ThreadSanitizer sets the status in exit(). */
		if (CHECKED_BY_TSAN)
			exit(0);
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], part, sizeof(part))) > 0)
		text.append(part, n);
	close(ends[0]);
	waitpid(pid, &status, 0);
	*well = status == 0;
	return text;
}

/* The child ends with a report that has these words. */
#define assert_reported(f, words) check_reported((f), (words), __FILE__, __LINE__)
static inline void check_reported(void (*f)(void), const char *words, const char *file, int line)
{
	bool well;
	std::string text = output_of(f, &well);

	if (!well && text.find(words) != std::string::npos)
		return;
	fprintf(stderr, "no report with \"%s\" but (%s):\n%.2000s\n", words,
		well ? "success" : "failure", text.c_str());
	_fail(file, line);
}

#define assert_clean(f) check_clean((f), __FILE__, __LINE__)
static inline void check_clean(void (*f)(void), const char *file, int line)
{
	bool well;
	std::string text = output_of(f, &well);

	if (well && text.empty())
		return;
	fprintf(stderr, "unexpected report:\n%.2000s\n", text.c_str());
	_fail(file, line);
}

/* n elements of device memory, set to bytes of 0. */
template <class T> static inline T *device_array(size_t n)
{
	void *p = nullptr;

	done(cudaMalloc(&p, n * sizeof(T)));
	done(cudaMemset(p, 0, n * sizeof(T)));
	return (T *)p;
}

template <class T> static inline T value_at(const T *p)
{
	T value;

	done(cudaMemcpy(&value, p, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

/* A pointer that a launch cannot see among the arguments. */
template <class T> struct hidden {
	T *p;
};

#endif
