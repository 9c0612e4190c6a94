// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * tensorstat with the module: every object, valid JSON, exit status, every kind of event, and top
 * in a terminal with ten thousand buffers.
 */
#include <ctype.h>
#include <poll.h>
#include <pty.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define TOOL "/t/bin/tensorstat"

static char out[4 << 20];

FIXTURE(tensorstat)
{
	int dev;
	struct tensor_alloc alloc;
	uint64_t id;
};

FIXTURE_SETUP(tensorstat)
{
	struct tensor_desc desc = {
		.bits = 32,
		.dtype = TAG_F32,
		.ndim = 2,
		.sizes = { 16, 64 },
		.strides = { 64, 1 },
		.label = "weights",
	};
	struct tensor_info info;

	ASSERT_EQ(0, access(TOOL, X_OK));
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 4 * PAGE, &self->alloc));
	ASSERT_EQ(0, buf_meta(self->dev, self->alloc.handle, TENSOR_META_SET, &desc));
	ASSERT_EQ(0, buf_info(self->dev, self->alloc.handle, &info));
	self->id = info.ino;
}

FIXTURE_TEARDOWN(tensorstat)
{
	close(self->dev);
}

/* Runs tensorstat: its exit status; its output is in out. */
static int run_as(const char *prefix, const char *args)
{
	char command[512];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "%s " TOOL " %s 2>&1%s", prefix, args,
		 *prefix ? "'" : "");
	f = popen(command, "r");
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = 0;
	return WEXITSTATUS(pclose(f));
}

static int run_tensorstat(const char *args)
{
	return run_as("", args);
}

#define EXPECT_SAYS(words)                  \
	EXPECT_NE(NULL, strstr(out, words)) \
	TH_LOG("\"%s\" is not in: %.400s", words, out)

/* A JSON parser: the position after the value at p, or NULL if it is invalid. */

static const char *json_value(const char *p);

static const char *json_space(const char *p)
{
	return p + strspn(p, " \n\t");
}

static const char *json_string(const char *p)
{
	for (p++; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return NULL;
		if (*p == '\\' && !strchr("\"\\/bfnrtu", *++p))
			return NULL;
	}
	return p + 1;
}

static const char *json_list(const char *p, char end, bool keys)
{
	p = json_space(p + 1);
	if (*p == end)
		return p + 1;
	while (1) {
		if (keys) {
			p = *p == '"' ? json_string(p) : NULL;
			p = p ? json_space(p) : NULL;
			if (!p || *p++ != ':')
				return NULL;
		}
		p = json_value(p);
		if (!p)
			return NULL;
		p = json_space(p);
		if (*p == end)
			return p + 1;
		if (*p++ != ',')
			return NULL;
		p = json_space(p);
	}
}

static const char *json_value(const char *p)
{
	static const char *const words[] = { "true", "false", "null" };
	size_t i, n;

	p = json_space(p);
	if (*p == '{' || *p == '[')
		return json_list(p, *p == '{' ? '}' : ']', *p == '{');
	if (*p == '"')
		return json_string(p);
	for (i = 0; i < 3; i++) {
		if (!strncmp(p, words[i], strlen(words[i])))
			return p + strlen(words[i]);
	}
	n = strspn(p, "-0123456789.");
	return n ? p + n : NULL;
}

static bool is_json(const char *text)
{
	const char *end = json_value(text);

	return end && !*json_space(end);
}

TEST_F(tensorstat, every_object_is_shown)
{
	static const char *const objects[] = { "buffer", "client", "export", "user", "device" };
	char args[64];
	int i, fd = buf_export_ro(self->dev, self->alloc.handle);

	for (i = 0; i < 5; i++) {
		snprintf(args, sizeof(args), "%s show", objects[i]);
		EXPECT_EQ(0, run_tensorstat(args)) TH_LOG("%s: %s", args, out);
		EXPECT_SAYS("backend: device");
		snprintf(args, sizeof(args), "-j %s show", objects[i]);
		EXPECT_EQ(0, run_tensorstat(args));
		EXPECT_TRUE(is_json(out)) TH_LOG("%s: %s", args, out);
		EXPECT_EQ('[', out[0]);
		EXPECT_EQ('{', out[1]);
		snprintf(args, sizeof(args), "-p %s show", objects[i]);
		EXPECT_EQ(0, run_tensorstat(args));
		EXPECT_TRUE(is_json(out));
		snprintf(args, sizeof(args), "-o %s show", objects[i]);
		EXPECT_EQ(0, run_tensorstat(args));
	}
	EXPECT_EQ(0, run_tensorstat("-j stat"));
	EXPECT_TRUE(is_json(out));
	EXPECT_EQ(0, run_tensorstat("-j doctor"));
	EXPECT_TRUE(is_json(out));
	close(fd);
}

TEST_F(tensorstat, buffer_row_shows_type_shape_and_holders)
{
	struct tensor_import import;
	pid_t pid;
	int go[2], fd = buf_export(self->dev, self->alloc.handle, 0);
	char args[64], holder[64];

	ASSERT_EQ(0, pipe(go));
	pid = fork();
	if (!pid) {
		int dev = dev_open();

		buf_import(dev, fd, &import);
		write(go[1], "x", 1);
		pause();
	}
	read(go[0], args, 1);
	snprintf(args, sizeof(args), "buffer show %llu", (unsigned long long)self->id);
	EXPECT_EQ(0, run_tensorstat(args));
	EXPECT_SAYS("weights  f32    [16,64]  16KiB   16KiB     3");
	snprintf(holder, sizeof(holder), "%d/tensorstat,%d/tensorstat", getpid(), pid);
	EXPECT_SAYS(holder);
	EXPECT_SAYS("shared");
	kill(pid, SIGKILL);
	reap(pid);
	close(fd);
}

/* A dtype that the library does not know is shown by its tag and its number of bits. */
TEST_F(tensorstat, unknown_element_is_shown_by_tag_and_bits)
{
	static const struct {
		uint32_t tag, bits;
		const char *name;
	} rows[] = {
		{ 7, 12, "tag7/12b" },
		{ 4000000000U, 4, "tag4000000000/4b" },
		{ 0, 8, "tag0/8b" },
		{ 13, 32, "tag13/32b" },
		{ TAG_F32, 64, "tag9/64b" },
		{ TAG_F32, 32, "f32" },
		{ 7, 16, "f16" },
		{ 1, 8, "bool" },
		{ TAG_C128, 128, "c128" },
	};
	struct tensor_desc desc = { .ndim = 1, .sizes = { 8 }, .strides = { 1 }, .label = "odd" };
	char args[64], says[96];
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		desc.dtype = rows[i].tag;
		desc.bits = rows[i].bits;
		ASSERT_EQ(0, buf_meta(self->dev, self->alloc.handle, TENSOR_META_SET, &desc));
		EXPECT_EQ(0, run_tensorstat("buffer show"));
		EXPECT_SAYS(rows[i].name);
		snprintf(args, sizeof(args), "-j buffer show dtype %s", rows[i].name);
		EXPECT_EQ(0, run_tensorstat(args));
		snprintf(says, sizeof(says), "\"dtype\":\"%s\"", rows[i].name);
		EXPECT_SAYS(says);
		snprintf(says, sizeof(says), "\"bits\":%u,\"tag\":%u,", rows[i].bits, rows[i].tag);
		EXPECT_SAYS(says);
		EXPECT_TRUE(is_json(out));
	}
	EXPECT_EQ(0, run_tensorstat("-j buffer show dtype tag7/13b"));
	EXPECT_STREQ("[]\n", out);
	EXPECT_EQ(2, run_tensorstat("buffer show dtype tag7"));
	EXPECT_EQ(2, run_tensorstat("buffer show dtype tag7/0b"));
	EXPECT_EQ(2, run_tensorstat("buffer show dtype tag7/12bits"));
	EXPECT_EQ(2, run_tensorstat("buffer show dtype tag-1/8b"));
	EXPECT_EQ(2, run_tensorstat("buffer show dtype tag4294967296/8b"));
	desc = (struct tensor_desc){ .bits = 12, .dtype = 7 };
	ASSERT_EQ(0, buf_meta(self->dev, self->alloc.handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(0, run_tensorstat("metrics"));
	EXPECT_SAYS("\ntensor_dtype_bytes{dtype=\"other\"} 16384\n");
	EXPECT_SAYS("\ntensor_linger_bytes 0\n");
}

TEST_F(tensorstat, rights_of_exports_are_shown)
{
	int ro = buf_export_ro(self->dev, self->alloc.handle);
	int blind = buf_export_rights(self->dev, self->alloc.handle, TENSOR_RIGHT_EXPORT, 0);

	EXPECT_EQ(0, run_tensorstat("--fields mode,rights export show"));
	EXPECT_SAYS("ro    read,attach,export\n");
	EXPECT_SAYS("-     export\n");
	EXPECT_EQ(0, run_tensorstat("-j export show"));
	EXPECT_SAYS("\"rights\":[\"read\",\"attach\",\"export\"]");
	EXPECT_SAYS("\"rights\":[\"export\"]");
	EXPECT_TRUE(is_json(out));
	close(ro);
	close(blind);
}

TEST_F(tensorstat, state_follows_seal_revoke_and_advise)
{
	EXPECT_EQ(0, buf_advise(self->dev, self->alloc.handle, TENSOR_ADVISE_PURGEABLE));
	EXPECT_EQ(0, run_tensorstat("buffer show"));
	EXPECT_SAYS("private,purgeable");
	EXPECT_EQ(0, buf_advise(self->dev, self->alloc.handle, TENSOR_ADVISE_WILLNEED));
	EXPECT_LT(0, buf_seal(self->dev, self->alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, run_tensorstat("buffer show"));
	EXPECT_SAYS("private,readonly");
	EXPECT_EQ(0, buf_revoke(self->dev, self->alloc.handle));
	EXPECT_EQ(0, run_tensorstat("buffer show"));
	EXPECT_SAYS("private,readonly,revoked");
}

TEST_F(tensorstat, buffer_of_an_ended_process_is_an_orphan)
{
	int sock[2], fd;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	if (!pid)
		_exit(send_fd(sock[1], buf_new_fd(PAGE)));
	fd = recv_fd(sock[0]);
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, run_tensorstat("buffer show"));
	EXPECT_SAYS("shared,orphan");
	EXPECT_EQ(0, run_tensorstat("export show"));
	EXPECT_SAYS("fd    rw");
	close(fd);
}

TEST_F(tensorstat, parameters_are_set_by_root_only)
{
	char old[64];

	read_text(LIMIT_FILE, old, sizeof(old));
	EXPECT_EQ(0, run_tensorstat("device set limit_bytes 64M"));
	EXPECT_EQ(64 << 20, read_number(LIMIT_FILE, ""));
	EXPECT_EQ(0, run_tensorstat("device show"));
	EXPECT_SAYS("limit_bytes               64MiB");
	EXPECT_EQ(2, run_tensorstat("device set nonsense 1"));
	EXPECT_EQ(2, run_tensorstat("device set limit_bytes many"));
	EXPECT_EQ(2, run_tensorstat("device set limit_bytes"));
	EXPECT_EQ(4, run_as("su guest -c '", "device set limit_bytes 1"));
	write_text(LIMIT_FILE, old);
}

TEST_F(tensorstat, exit_status_depends_on_the_error)
{
	EXPECT_EQ(6, run_tensorstat("buffer show 99999999"));
	EXPECT_EQ(6, run_tensorstat("client show pid 1"));
	EXPECT_EQ(2, run_tensorstat("monitor flood"));
	EXPECT_EQ(4, run_as("su guest -c '", "monitor"));
	EXPECT_EQ(0, run_as("su guest -c '", "-j buffer show"));
	EXPECT_STREQ("[]\n", out);
}

TEST_F(tensorstat, metrics_agree_with_the_objects)
{
	EXPECT_EQ(0, run_tensorstat("metrics"));
	EXPECT_SAYS("tensor_up{backend=\"device\"");
	EXPECT_SAYS("\ntensor_buffers 1\n");
	EXPECT_SAYS("\ntensor_buffer_bytes 16384\n");
	EXPECT_SAYS("\ntensor_used_bytes 16384\n");
	EXPECT_SAYS("\ntensor_dtype_bytes{dtype=\"f32\"} 16384\n");
	EXPECT_SAYS("\ntensor_user_buffers{uid=\"0\"} 1\n");
	EXPECT_SAYS("# EOF\n");
}

TEST_F(tensorstat, doctor_finds_the_module_and_its_node)
{
	run_tensorstat("doctor");
	EXPECT_SAYS("ok    module");
	EXPECT_SAYS("ok    node       /dev/tensor is there");
	EXPECT_SAYS("ok    access");
	EXPECT_SAYS("ok    netlink");
	EXPECT_SAYS("ok    use");
	run_as("su nobody -s /bin/sh -c '", "doctor");
	EXPECT_SAYS("FAIL  access");
	EXPECT_SAYS("usermod -aG tensor");
}

/* Reads until that word appears, for at most ten seconds. */
static bool wait_for_output(int fd, const char *word)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	size_t at = strlen(out);
	ssize_t n;
	int i;

	for (i = 0; i < 100 && !strstr(out, word); i++) {
		if (poll(&in, 1, 100) <= 0)
			continue;
		n = read(fd, out + at, sizeof(out) - 1 - at);
		if (n <= 0)
			break;
		at += n;
		out[at] = 0;
	}
	return strstr(out, word);
}

static pid_t start(int *fd, char *const *argv)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execv(TOOL, argv);
		_exit(127);
	}
	close(ends[1]);
	*fd = ends[0];
	*out = 0;
	return pid;
}

TEST_F_TIMEOUT(tensorstat, monitor_shows_each_kind_of_event, 120)
{
	static const char *const kinds[] = { "alloc", "free",	"import", "export",
					     "seal",  "revoke", "limit",  "death" };
	char *argv[] = { TOOL, "-j", "monitor", NULL };
	struct tensor_import import;
	struct tensor_alloc alloc;
	char old[64], word[32], *line;
	int fd, file, i, dev;
	pid_t pid = start(&fd, argv);

	/* until it listens, since earlier events are not shown */
	for (i = 0; i < 100 && !strstr(out, "alloc"); i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
		ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
		sleep_ms(100);
		wait_for_output(fd, "alloc");
	}
	dev = dev_open();
	file = buf_export(self->dev, self->alloc.handle, 0);
	buf_import(dev, file, &import);
	close(dev);
	buf_seal(self->dev, self->alloc.handle, TENSOR_SEAL_META);
	read_text(LIMIT_FILE, old, sizeof(old));
	write_text(LIMIT_FILE, "4096");
	dev_alloc(self->dev, MIB, &alloc);
	write_text(LIMIT_FILE, old);
	buf_revoke(self->dev, self->alloc.handle);
	for (i = 0; i < 8; i++) {
		snprintf(word, sizeof(word), "\"event\":\"%s\"", kinds[i]);
		EXPECT_TRUE(wait_for_output(fd, word)) TH_LOG("%s is not in: %.2000s", word, out);
	}
	for (line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
		EXPECT_TRUE(is_json(line)) TH_LOG("%s", line);
	}
	kill(pid, SIGTERM);
	EXPECT_EQ(-SIGTERM, reap(pid));
	close(file);
	close(fd);
}

TEST_F_TIMEOUT(tensorstat, monitor_dumps_again_after_enobufs, 120)
{
	char *argv[] = { TOOL, "monitor", "alloc", NULL };
	struct tensor_alloc alloc;
	int fd, i;
	pid_t pid = start(&fd, argv);

	for (i = 0; i < 50 && !wait_for_output(fd, "alloc"); i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	kill(pid, SIGSTOP);
	for (i = 0; i < 12000; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	kill(pid, SIGCONT);
	EXPECT_TRUE(wait_for_output(fd, "found by dump"));
	kill(pid, SIGKILL);
	reap(pid);
	close(fd);
}

static pid_t start_top(int *master, int rows, int columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	char *argv[] = { TOOL, "-w", "0.2", "top", NULL };
	pid_t pid = forkpty(master, NULL, NULL, &size);

	if (!pid) {
		setenv("TERM", "linux", 1);
		execv(TOOL, argv);
		_exit(127);
	}
	*out = 0;
	return pid;
}

TEST_F_TIMEOUT(tensorstat, top_of_ten_thousand_buffers_fits_the_window_and_is_quick, 300)
{
	struct tensor_alloc alloc;
	int master, i, ms = -1;
	const char *at;
	pid_t pid;

	for (i = 0; i < 9999; i++)
		ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	pid = start_top(&master, 24, 100);
	EXPECT_TRUE(wait_for_output(master, "10000 buffers"));
	EXPECT_TRUE(wait_for_output(master, "buffer by size: 10000, rows 1-18"));
	EXPECT_SAYS("\033[?1049h");
	EXPECT_EQ(NULL, strstr(out, "\033[2J"));
	at = strstr(out, "read and sorted in ");
	if (at)
		sscanf(at, "read and sorted in %d ms", &ms);
	/* sorted by size */
	EXPECT_TRUE(wait_for_output(master, "weights"));
	TH_LOG("one refresh of 10,000 buffers: %d ms", ms);
	EXPECT_LE(0, ms);
	EXPECT_GT(5000, ms);
	*out = 0;
	EXPECT_EQ(1, write(master, "p", 1));
	EXPECT_TRUE(wait_for_output(master, "process by size: 1"));
	EXPECT_EQ(1, write(master, "q", 1));
	EXPECT_TRUE(wait_for_output(master, "\033[?1049l"));
	EXPECT_EQ(0, reap(pid));
	close(master);
}

TEST_HARNESS_MAIN
