/* What a peer may do to us, and what we do to it. */
#ifndef HM_RPC_LIMITS_H
#define HM_RPC_LIMITS_H

enum {
	RPC_MAX_SEND_BYTES = 4194304,     /* grpc-go's and so the kubelet's limit for a message it receives */
	RPC_MAX_RECEIVE_BYTES = 16777216, /* a message to us */
	RPC_MAX_STREAMS = 100,            /* open calls of one connection */
	RPC_MAX_HEADER_BYTES = 16384,     /* header list of one call */
	RPC_MAX_CONNECTIONS = 64, /* beyond it the oldest connection without SETTINGS goes, else the oldest idle one */
	RPC_SETTINGS_TIMEOUT_MS = 10000,   /* a connection that is silent for so long is closed */
	RPC_WINDOW_BYTES = 1048576,        /* flow control, connection and stream */
	RPC_MAX_RESETS_PER_SECOND = 200,   /* RST_STREAM frames of a peer, averaged; then GOAWAY and close */
	RPC_MAX_RESET_BURST = 1000,        /* what it may send at once after a quiet time */
	RPC_MAX_BUFFERED_BYTES = 67108864, /* unfinished requests and unsent answers of one connection together */
	RPC_MAX_OUTBOUND_ACKS = 1000,      /* PING and SETTINGS answers that a peer lets pile up */
	RPC_MAX_MESSAGE_TEXT_BYTES = 1024, /* grpc-message before encoding */
};

#endif
