// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * AF_XDP, which pins long-term: a packet is written into a mapping of a buffer, sent from there by
 * the kernel, and received by an ordinary socket.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include "../include/device.h"
#include "kselftest_harness.h"
#include "../include/xdp.h"

#define BYTES HUGE
#define RING  8
#define PORT  7007

/* Ethernet, IPv4 without options, UDP. */
struct packet {
	uint8_t to[6], from[6];
	uint16_t type;
	uint8_t version, tos;
	uint16_t length, id, fragment;
	uint8_t ttl, protocol;
	uint16_t sum;
	uint32_t source, dest;
	uint16_t sport, dport, ulength, usum;
	char data[32];
} __attribute__((packed));

FIXTURE(xdp)
{
	int dev;
	struct tensor_alloc buf;
	unsigned char *at;
	int sock;
	int udp;
	char *tx, *done, *fill;
	struct xdp_mmap_offsets off;
};

static char *ring(int sock, int option, uint64_t offset, size_t bytes)
{
	int entries = RING;

	if (setsockopt(sock, SOL_XDP, option, &entries, sizeof(entries)))
		return MAP_FAILED;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, sock, offset);
}

/* Accepts packets on lo with a local source address that were not sent through lo. */
static void accept_local_packets(void)
{
	write_text("/proc/sys/net/ipv4/conf/lo/route_localnet", "1");
	write_text("/proc/sys/net/ipv4/conf/lo/accept_local", "1");
	write_text("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
	write_text("/proc/sys/net/ipv4/conf/lo/rp_filter", "0");
}

/* A worker releases the queue of a closed socket after a delay. */
static int bind_queue(int sock, const struct sockaddr_xdp *addr)
{
	int tries = 500;

	while (bind(sock, (const struct sockaddr *)addr, sizeof(*addr))) {
		if (errno != EBUSY || !tries--)
			return -errno;
		usleep(10000);
	}
	return 0;
}

FIXTURE_SETUP(xdp)
{
	struct xdp_umem_reg reg = { .chunk_size = PAGE, .len = BYTES };
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_xdp lo = { .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY };
	socklen_t len = sizeof(self->off);

	self->sock = socket(AF_XDP, SOCK_RAW, 0);
	if (self->sock < 0)
		return;
	accept_local_packets();
	self->dev = dev_open();
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	self->at = map_shared(self->dev, BYTES, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, self->at);
	reg.addr = (unsigned long)self->at;
	ASSERT_EQ(0, setsockopt(self->sock, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)));
	self->fill = ring(self->sock, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, PAGE);
	ASSERT_NE(MAP_FAILED, self->fill);
	self->done =
		ring(self->sock, XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, PAGE);
	self->tx = ring(self->sock, XDP_TX_RING, XDP_PGOFF_TX_RING, PAGE);
	ASSERT_NE(MAP_FAILED, self->done);
	ASSERT_NE(MAP_FAILED, self->tx);
	ASSERT_EQ(0, getsockopt(self->sock, SOL_XDP, XDP_MMAP_OFFSETS, &self->off, &len));
	lo.sxdp_ifindex = if_nametoindex("lo");
	ASSERT_EQ(0, bind_queue(self->sock, &lo));
	self->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(0, bind(self->udp, (struct sockaddr *)&here, sizeof(here)));
}

FIXTURE_TEARDOWN(xdp)
{
	if (self->sock < 0)
		return;
	close(self->sock);
	close(self->udp);
	munmap(self->at, BYTES);
	dev_close(self->dev, self->buf.handle);
	/* the socket exists as long as its rings, and its pages stay pinned and charged as long */
	sleep_ms(100);
	EXPECT_EQ(BYTES, dev_used(self->dev));
	munmap(self->fill, PAGE);
	munmap(self->tx, PAGE);
	munmap(self->done, PAGE);
	EXPECT_TRUE(used_becomes(self->dev, 0));
	close(self->dev);
}

static uint16_t sum_of(const uint16_t *words, int n)
{
	uint32_t sum = 0;

	while (n--)
		sum += *words++;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void compose(struct packet *p, const char *data)
{
	struct packet made = {
		.type = htons(0x0800),
		.version = 0x45,
		.length = htons(20 + 8 + 32),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.source = htonl(INADDR_LOOPBACK),
		.dest = htonl(INADDR_LOOPBACK),
		.sport = htons(1),
		.dport = htons(PORT),
		.ulength = htons(8 + 32),
	};
	uint16_t words[10];

	memcpy(words, (char *)&made + 14, 20);
	made.sum = sum_of(words, 10);
	strcpy(made.data, data);
	memcpy(p, &made, sizeof(made));
}

/* Puts a frame, given by its offset in the memory, into the queue: 0 or -errno. */
static int transmit(FIXTURE_DATA(xdp) * self, uint64_t frame)
{
	uint32_t *producer = (uint32_t *)(self->tx + self->off.tx.producer);
	struct xdp_desc *desc = (struct xdp_desc *)(self->tx + self->off.tx.desc);

	desc[*producer % RING] = (struct xdp_desc){ .addr = frame, .len = sizeof(struct packet) };
	__atomic_store_n(producer, *producer + 1, __ATOMIC_RELEASE);
	return sendto(self->sock, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

static int received(FIXTURE_DATA(xdp) * self, char *data, size_t room)
{
	struct pollfd p = { .fd = self->udp, .events = POLLIN };

	return poll(&p, 1, 5000) == 1 ? (int)recv(self->udp, data, room, 0) : -ETIMEDOUT;
}

/* Sends the first frame and one in the middle of the huge chunk. */
TEST_F(xdp, packets_are_sent_from_a_buffer)
{
	const uint64_t frames[] = { 0, 300 * PAGE };
	uint32_t *done;
	char data[64];
	int i;

	if (self->sock < 0)
		SKIP(return, "no AF_XDP in this kernel");
	for (i = 0; i < 2; i++) {
		compose((struct packet *)(self->at + frames[i]), i ? "second" : "first");
		ASSERT_EQ(0, transmit(self, frames[i]));
		ASSERT_EQ(32, received(self, data, sizeof(data)));
		EXPECT_STREQ(i ? "second" : "first", data);
	}
	done = (uint32_t *)(self->done + self->off.cr.producer);
	EXPECT_EQ(2, __atomic_load_n(done, __ATOMIC_ACQUIRE));
}

/* The queue keeps the memory until it ends: after munmap() and close() it can still send. */
TEST_F(xdp, queue_outlives_mapping_and_handle)
{
	char data[64];

	if (self->sock < 0)
		SKIP(return, "no AF_XDP in this kernel");
	compose((struct packet *)self->at, "alone");
	munmap(self->at, BYTES);
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	ASSERT_EQ(0, transmit(self, 0));
	ASSERT_EQ(32, received(self, data, sizeof(data)));
	EXPECT_STREQ("alone", data);
	self->at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST_HARNESS_MAIN
