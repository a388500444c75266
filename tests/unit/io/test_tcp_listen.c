/* Who can reach a listening socket, by IPv4 and IPv6, and whether it is told apart from a stranger. */
#include "io/tcp_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "core/cleanup.h"
#include "harness/unit.h"

/* A connection to that address; -1 where nobody listens, or the machine has no such address. */
static int dial(const char *host, unsigned port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
	const void *to = is_v4 ? (const void *)&v4 : (const void *)&v6;
	hm_auto_fd fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!is_v4)
		assert_int_equal(inet_pton(AF_INET6, host, &v6.sin6_addr), 1);
	if (fd < 0 || connect(fd, to, is_v4 ? sizeof v4 : sizeof v6) < 0)
		return -1;
	return hm_steal_fd(&fd);
}

static bool machine_has_ipv6(void)
{
	hm_auto_fd fd = -1, again = -1;
	struct hm_err e;

	if (tcp_listen("[::1]:0", 4, &fd, &e) < 0)
		return false;
	again = dial("::1", tcp_port(fd));
	return again >= 0;
}

/* As Go's listener has it; HAMi's chart says 0.0.0.0 and serves clusters of IPv6, too. */
static void every_address_is_of_both_kinds(void **state)
{
	static const char *const all[] = { ":0", "0.0.0.0:0", "[::]:0" };
	static const char *const hosts[] = { "127.0.0.1", "::1" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(all); i++)
		for (size_t k = 0; k < (machine_has_ipv6() ? 2 : 1); k++) {
			hm_auto_fd fd = -1, here = -1, there = -1;
			struct hm_err e;

			assert_int_equal(tcp_listen(all[i], 4, &fd, &e), 0);
			here = dial(hosts[k], tcp_port(fd));
			if (here < 0)
				fail_msg("%s is not reached by %s", all[i], hosts[k]);
			there = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			assert_true(there >= 0);
			assert_true(tcp_peer_is_local(there));
		}
}

static void one_address_is_that_alone(void **state)
{
	hm_auto_fd fd = -1, other = -1;
	struct hm_err e;

	(void)state;
	assert_int_equal(tcp_listen("127.0.0.1:0", 4, &fd, &e), 0);
	other = dial("127.0.0.2", tcp_port(fd));
	assert_int_equal(other, -1);
	assert_int_equal(tcp_listen("127.0.0.1:x", 4, &other, &e), -HM_EINVAL);
	assert_int_equal(tcp_listen("localhost:1", 4, &other, &e), -HM_EINVAL);
}

/* A mesh's proxy has another loopback address, and passes on what anybody asked. */
static void one_loopback_address_is_local(void **state)
{
	static const struct {
		const char *from, *says;
		bool local;
	} rows[] = {
		{ "127.0.0.1", "::ffff:127.0.0.1", true },
		{ "127.0.0.6", "::ffff:127.0.0.6", false },
		{ "127.255.255.254", "::ffff:127.255.255.254", false },
	};
	static const char *const listens[] = { "127.0.0.1:0", ":0" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(listens) * HM_COUNT(rows); i++) {
		const char *from = rows[i / 2].from, *says = rows[i / 2].says;
		struct sockaddr_in at = { .sin_family = AF_INET };
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
		hm_auto_fd fd = -1, here = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), there = -1;
		char peer[TCP_PEER_BYTES];
		struct hm_err e;

		assert_int_equal(tcp_listen(listens[i % 2], 4, &fd, &e), 0);
		to.sin_port = htons((uint16_t)tcp_port(fd));
		assert_int_equal(inet_pton(AF_INET, from, &at.sin_addr), 1);
		assert_int_equal(bind(here, (const struct sockaddr *)&at, sizeof at), 0);
		assert_int_equal(connect(here, (const struct sockaddr *)&to, sizeof to), 0);
		there = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		assert_int_equal(tcp_peer_is_local(there), rows[i / 2].local);
		tcp_peer_text(there, peer);
		if (strcmp(peer, from) != 0)
			assert_string_equal(peer, says);
	}
}

static void who_is_not_known_is_not_local(void **state)
{
	hm_auto_fd fd = -1, a = -1, b = -1;
	char peer[TCP_PEER_BYTES] = "x";
	int pair[2];
	struct hm_err e;

	(void)state;
	assert_false(tcp_peer_is_local(-1));
	assert_int_equal(tcp_listen("127.0.0.1:0", 4, &fd, &e), 0);
	assert_false(tcp_peer_is_local(fd));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	a = pair[0];
	b = pair[1];
	assert_false(tcp_peer_is_local(a));
	tcp_peer_text(a, peer);
	assert_string_equal(peer, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_address_is_of_both_kinds),
		cmocka_unit_test(one_address_is_that_alone),
		cmocka_unit_test(one_loopback_address_is_local),
		cmocka_unit_test(who_is_not_known_is_not_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
