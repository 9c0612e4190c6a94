// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Numbers in texts and files in a locale whose decimal point is a comma. */
#include "files.h"

#include <locale.h>

/* A locale of its own, so that none has to be installed. */
static int make_comma(void **state)
{
	static const char source[] =
		"LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
		"END LC_NUMERIC\n";

	if (make_folder(state))
		return 1;
	write_file("comma.src", source, sizeof(source) - 1);
	setenv("LOCPATH", folder, 1);
	return system("localedef -c -i comma.src -f ANSI_X3.4-1968 ./comma >/dev/null 2>&1") < 0;
}

static int remove_comma(void **state)
{
	return system("rm -r comma") || remove_folder(state);
}

static void need_comma(void)
{
	if (!setlocale(LC_NUMERIC, "comma"))
		skip();
}

static int leave_comma(void **state)
{
	(void)state;
	return !setlocale(LC_NUMERIC, "C");
}

static void numbers_of_a_tensor_have_a_point(void **state)
{
	(void)state;
	need_comma();
	tensor_scope {
		char text[100];

		assert_true(tensor_format(ok(tensor_full(TENSOR_SHAPE(2), S(1.5), F32)), text,
					  sizeof(text)) > 0);
		assert_string_equal(text, "tensor([1.5000, 1.5000])");
	}
	/* The locale of the program stays. */
	assert_string_equal(localeconv()->decimal_point, ",");
}

static void file_of_an_optimizer_is_loaded_in_every_locale(void **state)
{
	(void)state;
	tensor_scope {
		tensor *w = ok(tensor_ones(TENSOR_SHAPE(2), F32));
		tensor_optim *o = tensor_optim_new(TENSOR_LIST(w), TENSOR_SGD(.lr = 0.3));

		assert_done(tensor_optim_save(o, "point"));
		need_comma();
		assert_done(tensor_optim_load(o, "point"));
		assert_done(tensor_optim_save(o, "comma.st"));
		setlocale(LC_NUMERIC, "C");
		assert_done(tensor_optim_load(o, "comma.st"));
		assert_true(tensor_optim_lr(o, 0) == 0.3);
		tensor_optim_free(o);
	}
}

static void coordinates_of_a_curve_have_a_point(void **state)
{
	const struct tensor_progress_options quiet = { .quiet = true };
	tensor_progress *p = tensor_progress_new(&quiet);
	unsigned char *text;
	size_t n;

	(void)state;
	need_comma();
	for (int i = 0; i < 5; i++)
		assert_done(tensor_progress_step(p, 1.0 / (1 + i), 1));
	assert_done(tensor_progress_save_svg(p, "curve.svg", NULL));
	tensor_progress_free(p);
	text = read_file("curve.svg", &n);
	for (size_t i = 1; i + 1 < n; i++)
		assert_false(text[i] == ',' && text[i - 1] >= '0' && text[i - 1] <= '9' &&
			     text[i + 1] >= '0' && text[i + 1] <= '9');
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(numbers_of_a_tensor_have_a_point, leave_comma),
		cmocka_unit_test_teardown(file_of_an_optimizer_is_loaded_in_every_locale,
					  leave_comma),
		cmocka_unit_test_teardown(coordinates_of_a_curve_have_a_point, leave_comma),
	};

	return cmocka_run_group_tests_name("locale", tests, make_comma, remove_comma);
}
