// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Mapped files: sent as their descriptor to a peer that trusts the sender, as a copy to any other. */
#include "pools.h"
#include "wire_test.h"

#include "lib/sharing/wire.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FILES TENSOR_CHANNEL_OPTIONS(.ring = true, .files = true)

static char path[64];

/* A file of weights, and the tensor of it in this process. */
static tensor *mapped(const char *name)
{
	struct tensor_load_options map = { .map = TENSOR_MAP_READONLY };
	tensor_archive *file = tensor_open_safetensors(path, &map);
	tensor *t;

	assert_non_null(file);
	t = ok(tensor_archive_get(file, name));
	tensor_archive_close(file);
	return t;
}

static int save(void **state)
{
	snprintf(path, sizeof(path), "/tmp/test-channel-file-%d", (int)getpid());
	tensor_scope {
		struct tensor_named t = { "weight", ok(tensor_ones(TENSOR_INTS(256, 256), F32)) };

		assert_done(tensor_save_safetensors(path, &t, 1, NULL, 0));
	}
	return 0;
}

static int remove_file(void **state)
{
	return unlink(path);
}

/* The number of mappings of the file in this process. */
static int mappings(void)
{
	return memfd_mappings(path, NULL, NULL);
}

static struct pair files_pair(const struct tensor_channel_options *in)
{
	struct pair p;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.ends), 0);
	p.out = tensor_channel_open_with(p.ends[0], RINGS);
	p.in = tensor_channel_open_with(p.ends[1], in);
	assert_true(p.out && p.in);
	/* Both ends know each other. */
	for (int i = 0; i < 3; i++)
		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(4), F32));

			pass(&p, t);
			assert_done(tensor_send(p.in, t, 0));
			ok(tensor_recv(p.out));
		}
	return p;
}

static void trusting_receiver_maps_the_file(void **state)
{
	struct pair p = files_pair(FILES);
	int fds = count_fds();

	tensor_scope {
		tensor *t = mapped("weight"), *got, *view, *again;

		assert_int_equal(mappings(), 1);
		assert_done(tensor_send(p.out, t, 0));
		got = ok(tensor_recv(p.in));
		assert_same(got, t);
		assert_int_equal(mappings(), 2);
		assert_false(tensor_is_writable(got));
		assert_fails(tensor_fill_(got, S(0)), EACCES, "read-only");
		/* By the ring now, and on the same storage. */
		view = pass(&p, ok(tensor_select(t, 0, 7)));
		assert_same(view, ok(tensor_select(t, 0, 7)));
		again = pass(&p, t);
		assert_true(tensor_shares_storage(again, got) && tensor_shares_storage(view, got));
		assert_int_equal(mappings(), 2);
		/* A received file goes on as one, too, and back. */
		assert_done(tensor_send(p.in, got, 0));
		assert_same(ok(tensor_recv(p.out)), t);
	}
	pair_close(&p);
	assert_int_equal(mappings(), 0);
	assert_true(count_fds() <= fds);
}

static void other_receivers_get_a_copy(void **state)
{
	for (int kind = 0; kind < 3; kind++) {
		struct pair p;

		if (kind == 0)
			p = files_pair(RINGS);
		else if (kind == 1)
			p = files_pair(TENSOR_CHANNEL_OPTIONS(.files = true)); /* without rings */
		else
			p = pair_open(SOCK_SEQPACKET);
		tensor_scope {
			tensor *t = mapped("weight"), *got = pass(&p, t);

			assert_same(got, t);
			assert_int_equal(mappings(), 1);
			assert_true(tensor_is_writable(got));
		}
		pair_close(&p);
	}
}

/* Private mappings can have other values than the file. */
static void private_mapping_is_copied(void **state)
{
	struct pair p = files_pair(FILES);

	tensor_scope {
		struct tensor_load_options map = { .map = TENSOR_MAP_PRIVATE };
		tensor_archive *file = tensor_open_safetensors(path, &map);
		tensor *t = ok(tensor_archive_get(file, "weight")), *got;

		tensor_archive_close(file);
		ok(tensor_fill_(t, S(3)));
		got = pass(&p, t);
		assert_same(got, t);
		assert_true(tensor_is_writable(got));
	}
	pair_close(&p);
}

/* Other functions treat a mapped file as before. */
static void file_has_no_buffer(void **state)
{
	struct pair p = files_pair(FILES);

	tensor_scope {
		tensor *t = mapped("weight"), *got;
		struct tensor_buffer_info info = { .size = sizeof(info) };

		got = pass(&p, t);
		assert_int_equal(tensor_buffer_fd(got, TENSOR_BUFFER_READ), -EINVAL);
		assert_int_equal(tensor_buffer_info(got, &info), -EINVAL);
		assert_int_equal(tensor_share_memory(got), -ENOTSUP);
		assert_int_equal(tensor_set_label(got, "x"), -EINVAL);
		assert_int_equal(tensor_version(got), 0);
	}
	pair_close(&p);
}

/* A message of a file with one thing wrong. */
static void hostile_files_are_refused(void **state)
{
	enum { WRITABLE, OTHER, PIPE, UNTRUSTED, WRITE_FLAG, TOO_LONG, DEVICE, KINDS };

	for (int kind = 0; kind < KINDS; kind++) {
		int ends[2], middle[2], fd, pipes[2], other, zero = open("/dev/zero", O_RDONLY);
		tensor_channel *in, *out;
		struct wire_message m;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, middle), 0);
		assert_int_equal(pipe(pipes), 0);
		in = tensor_channel_open_with(ends[0], kind == UNTRUSTED ? RINGS : FILES);
		out = tensor_channel_open(middle[0]);
		tensor_scope {
			tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
			struct stat st;

			assert_done(tensor_send(out, t, 0));
			close(wire_test_recv(middle[1], &m));
			fd = open(path, kind == WRITABLE ? O_RDWR : O_RDONLY);
			other = open("/proc/self/exe", O_RDONLY);
			assert_int_equal(fstat(fd, &st), 0);
			m.flags |= WIRE_FILE | (kind == WRITE_FLAG ? 0 : WIRE_READONLY);
			m.dev = st.st_dev;
			m.ino = st.st_ino;
			if (kind == TOO_LONG)
				m.sizes[0] = st.st_size;
			assert_int_equal(wire_test_send(ends[1], &m,
							kind == OTHER  ? other :
							kind == PIPE   ? pipes[0] :
							kind == DEVICE ? zero :
									 fd),
					 sizeof(m));
			assert_fails(tensor_recv_timeout(in, 1000 * MS), EBADMSG, "recv");
			/* The next message is received. */
			m.flags = WIRE_FD | WIRE_FILE | WIRE_READONLY;
			m.sizes[0] = 4;
			close(fd);
			fd = open(path, O_RDONLY);
			assert_int_equal(wire_test_send(ends[1], &m, fd), sizeof(m));
			if (kind == UNTRUSTED)
				assert_fails(tensor_recv_timeout(in, 1000 * MS), EBADMSG,
					     "not opened for");
			else
				ok(tensor_recv_timeout(in, 1000 * MS));
		}
		tensor_channel_close(in);
		tensor_channel_close(out);
		for (int i = 0; i < 2; i++) {
			close(ends[i]);
			close(middle[i]);
			close(pipes[i]);
		}
		close(fd);
		close(other);
		close(zero);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trusting_receiver_maps_the_file),
		cmocka_unit_test(other_receivers_get_a_copy),
		cmocka_unit_test(private_mapping_is_copied),
		cmocka_unit_test(file_has_no_buffer),
		cmocka_unit_test(hostile_files_are_refused),
	};

	return cmocka_run_group_tests_name("channel_file", tests, save, remove_file);
}
