#include "rpc/send_queue.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/grpc_frame.h"

struct message {
	struct link link;
	size_t n;
	uint8_t bytes[]; /* prefix and message */
};

void send_queue_init(struct send_queue *q)
{
	*q = (struct send_queue) { 0 };
	list_init(&q->messages);
}

static void drop(struct send_queue *q, struct message *m)
{
	link_remove(&m->link);
	q->bytes -= m->n;
	free(m);
}

void send_queue_clear(struct send_queue *q)
{
	LIST_FOR_EACH (&q->messages, it)
		drop(q, HM_CONTAINER(it, struct message, link));
	q->started = 0;
}

bool send_queue_empty(const struct send_queue *q)
{
	return list_empty(&q->messages);
}

static struct message *message_new(const uint8_t *msg, size_t n)
{
	struct message *m = malloc(sizeof *m + GRPC_PREFIX + n);

	if (m == NULL)
		return NULL;
	*m = (struct message) { .n = GRPC_PREFIX + n };
	grpc_write_prefix(m->bytes, n);
	if (n > 0)
		memcpy(m->bytes + GRPC_PREFIX, msg, n);
	return m;
}

static void append(struct send_queue *q, struct message *m)
{
	link_append(&q->messages, &m->link);
	q->bytes += m->n;
}

bool send_queue_push(struct send_queue *q, const uint8_t *msg, size_t n)
{
	struct message *m = message_new(msg, n);

	if (m == NULL)
		return false;
	append(q, m);
	return true;
}

void send_queue_drop_unstarted(struct send_queue *q)
{
	const struct link *started = q->started > 0 ? list_first(&q->messages) : NULL;

	LIST_FOR_EACH (&q->messages, it) {
		if (it != started)
			drop(q, HM_CONTAINER(it, struct message, link));
	}
}

bool send_queue_push_latest(struct send_queue *q, const uint8_t *msg, size_t n)
{
	struct message *m = message_new(msg, n);

	if (m == NULL)
		return false;
	send_queue_drop_unstarted(q);
	append(q, m);
	return true;
}

size_t send_queue_read(struct send_queue *q, uint8_t *out, size_t cap)
{
	size_t done = 0;

	while (done < cap && !send_queue_empty(q)) {
		struct message *m = HM_CONTAINER(list_first(&q->messages), struct message, link);
		size_t k = HM_MIN(m->n - q->started, cap - done);

		memcpy(out + done, m->bytes + q->started, k);
		done += k;
		q->started += k;
		if (q->started == m->n) {
			q->started = 0;
			drop(q, m);
		}
	}
	return done;
}
