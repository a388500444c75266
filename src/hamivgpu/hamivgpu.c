#include "hamivgpu/hamivgpu.h"

#include <stdlib.h>
#include <string.h>

#include "contract/host.h"
#include "hamivgpu/view.h"

struct hamivgpu {
	char *state_dir, *nvml_library, *proc_dir; /* owned; nvml_library may be NULL */
	struct gpu_driver *driver;                 /* NULL: not there yet */
	struct view *view;                         /* never NULL once open */
};

static int report(struct hamivgpu_error *to, const struct hm_err *from)
{
	struct hamivgpu_error local;

	if (to == NULL)
		to = &local;
	view_error(to, from);
	return -to->code;
}

static int read_view(struct hamivgpu *h, struct view *v, struct hm_err *e)
{
	int r = view_read_driver(v, &h->driver, h->nvml_library, e);

	if (r == 0)
		r = view_read_agent(v, h->state_dir, e);
	if (r == 0)
		r = view_read_regions(v, h->state_dir, e);
	if (r == 0)
		r = view_read_processes(v, h->driver, h->proc_dir, e);
	return r;
}

int hamivgpu_refresh(struct hamivgpu *h, struct hamivgpu_error *error)
{
	hm_auto(view) *v = view_new();
	struct hm_err e;

	if (v == NULL) {
		hm_err_set(&e, HM_ENOMEM, "snapshot");
		return report(error, &e);
	}
	if (read_view(h, v, &e) < 0)
		return report(error, &e);
	view_free(h->view);
	h->view = HM_STEAL(v);
	return 0;
}

static char *copy_of(const char *text, const char *otherwise)
{
	return strdup(text == NULL ? otherwise : text);
}

int hamivgpu_open(const struct hamivgpu_options *options, struct hamivgpu **out, struct hamivgpu_error *error)
{
	static const struct hamivgpu_options none = { sizeof none, NULL, NULL, NULL };
	struct hamivgpu *h;
	struct hm_err e;
	int r;

	if (options == NULL)
		options = &none;
	if (options->size != sizeof *options) {
		hm_err_set(&e, HM_EINVAL, "struct hamivgpu_options: size is %zu, not %zu", options->size,
			   sizeof *options);
		return report(error, &e);
	}
	h = calloc(1, sizeof *h);
	if (h != NULL) {
		h->state_dir = copy_of(options->state_dir, HM_STATE_DIR);
		h->proc_dir = copy_of(options->proc_dir, "/proc");
		if (options->nvml_library != NULL)
			h->nvml_library = copy_of(options->nvml_library, NULL);
	}
	if (h == NULL || h->state_dir == NULL || h->proc_dir == NULL ||
	    (options->nvml_library != NULL && h->nvml_library == NULL)) {
		hamivgpu_close(h);
		hm_err_set(&e, HM_ENOMEM, "handle");
		return report(error, &e);
	}
	r = hamivgpu_refresh(h, error);
	if (r < 0) {
		hamivgpu_close(h);
		return r;
	}
	*out = h;
	return 0;
}

void hamivgpu_close(struct hamivgpu *h)
{
	if (h == NULL)
		return;
	view_free(h->view);
	gpu_driver_close(h->driver);
	free(h->state_dir);
	free(h->nvml_library);
	free(h->proc_dir);
	free(h);
}

const struct hamivgpu_error *hamivgpu_driver_state(const struct hamivgpu *h)
{
	return &h->view->driver;
}

const struct hamivgpu_error *hamivgpu_agent_state(const struct hamivgpu *h)
{
	return &h->view->agent;
}

const struct hamivgpu_node *hamivgpu_node(const struct hamivgpu *h)
{
	return &h->view->node;
}

size_t hamivgpu_card_count(const struct hamivgpu *h)
{
	return h->view->card_count;
}

const struct hamivgpu_card *hamivgpu_card(const struct hamivgpu *h, size_t i)
{
	return i < h->view->card_count ? &h->view->cards[i] : NULL;
}

size_t hamivgpu_claim_count(const struct hamivgpu *h)
{
	return h->view->claim_count;
}

const struct hamivgpu_claim *hamivgpu_claim(const struct hamivgpu *h, size_t i)
{
	return i < h->view->claim_count ? &h->view->claims[i].c : NULL;
}

size_t hamivgpu_process_count(const struct hamivgpu *h)
{
	return h->view->process_count;
}

const struct hamivgpu_process *hamivgpu_process(const struct hamivgpu *h, size_t i)
{
	return i < h->view->process_count ? &h->view->processes[i] : NULL;
}

size_t hamivgpu_problem_count(const struct hamivgpu *h)
{
	return h->view->problem_count;
}

const char *hamivgpu_problem(const struct hamivgpu *h, size_t i)
{
	return i < h->view->problem_count ? h->view->problems[i] : NULL;
}
