#include "sched/simulate/picture.h"

#include "core/fmt.h"
#include "core/macros.h"

enum {
	GRAPH_X = 60,
	GRAPH_Y = 40,
	GRAPH_SIZE = 260, /* of 130 percent */
	PERCENTS = 130,
	CARDS_X = 360,
	CELL = 4, /* of a card */
	ROW_NODES = 150,
	SHADES = 6, /* empty, four quarters, full */
	LEGEND_Y = 325,
};

static const char *const shades[SHADES] = { "#e8eef2", "#bcd7e6", "#8fbfd9", "#4f9cc4", "#1f78a8", "#0b3c5d" };

static int at_x(int64_t percent)
{
	return GRAPH_X + (int)(percent * GRAPH_SIZE / PERCENTS);
}

static int at_y(int64_t part, int64_t whole)
{
	return GRAPH_Y + GRAPH_SIZE - (int)(whole == 0 ? 0 : part * GRAPH_SIZE * 100 / PERCENTS / whole);
}

static void text(struct str *out, int x, int y, const char *anchor, const char *words)
{
	str_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor);
	for (const char *c = words; *c != '\0'; c++) {
		if (*c == '<')
			str_add(out, "&lt;");
		else if (*c == '&')
			str_add(out, "&amp;");
		else
			str_addc(out, *c);
	}
	str_add(out, "</text>\n");
}

static void axes(struct str *out)
{
	for (int percent = 0; percent <= 100; percent += 20) {
		char label[8];

		hm_fmt(label, sizeof label, "%d", percent);
		str_addf(out, "<path d=\"M%d %dh%dM%d %dv%d\" stroke=\"#ddd\"/>\n", GRAPH_X, at_y(percent, 100),
			 GRAPH_SIZE, at_x(percent), GRAPH_Y, GRAPH_SIZE);
		text(out, GRAPH_X - 6, at_y(percent, 100) + 4, "end", label);
		text(out, at_x(percent), GRAPH_Y + GRAPH_SIZE + 15, "middle", label);
	}
	str_addf(out, "<path d=\"M%d %dL%d %d\" stroke=\"#aaa\" stroke-dasharray=\"4\"/>\n", at_x(0), at_y(0, 1),
		 at_x(100), at_y(1, 1));
	text(out, GRAPH_X + GRAPH_SIZE / 2, GRAPH_Y + GRAPH_SIZE + 32, "middle", "asked for, % of all cards");
	text(out, GRAPH_X, GRAPH_Y - 8, "start", "allocated, %");
}

static void curve(const struct run_result *r, int64_t cluster_milli, struct str *out)
{
	str_add(out, "<path fill=\"none\" stroke=\"#c0392b\" stroke-width=\"1.2\" d=\"M");
	for (size_t i = 0; i < r->curve_count && i <= PERCENTS; i++)
		str_addf(out, "%s%d %d", i == 0 ? "" : "L", at_x((int64_t)i), at_y(r->curve[i], cluster_milli));
	str_add(out, "\"/>\n");
}

static size_t shade_of(const struct node_state *n, size_t card)
{
	int64_t used = CARD_MILLI - card_free_milli(&n->cards[card], &n->used[card]);

	if (used <= 0)
		return 0;
	return used >= CARD_MILLI ? SHADES - 1 : 1 + (size_t)(used * (SHADES - 2) / CARD_MILLI);
}

/* The most cards of the nodes in each row of the picture make its height. */
static void cards(const struct scene *s, int x, size_t shade, struct str *out)
{
	int y = GRAPH_Y;

	for (size_t first = 0; first < s->node_count; first += ROW_NODES) {
		size_t end = HM_MIN(first + ROW_NODES, s->node_count), most = 0;

		for (size_t i = first; i < end; i++) {
			const struct node_state *n = s->nodes[i];

			most = HM_MAX(most, n->count);
			for (size_t k = 0; k < n->count; k++)
				if (shade_of(n, k) == shade)
					str_addf(out, "M%d %dh3", x + (int)(i - first) * CELL, y + (int)k * CELL);
		}
		y += (int)(most + 1) * CELL;
	}
}

void picture_write(const struct run_result *runs, size_t count, int64_t cluster_milli, const struct scene *scene,
		   const char *title, struct str *out)
{
	static const char *const meaning[SHADES] = { "empty", "to 25 %", "to 50 %", "to 75 %", "above", "full" };

	int left = count > 0 ? CARDS_X : GRAPH_X;

	str_add(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"980\" height=\"345\" viewBox=\"0 0 980 345\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"980\" height=\"345\" fill=\"#fff\"/>\n");
	text(out, GRAPH_X, 18, "start", title);
	if (count > 0)
		axes(out);
	for (size_t i = 0; i < count; i++)
		curve(&runs[i], cluster_milli, out);
	text(out, left, GRAPH_Y - 8, "start", "every card at the end; a column is a node");
	for (size_t shade = 0; shade < SHADES; shade++) {
		int x = left + (int)shade * 80;

		str_addf(out, "<path stroke=\"%s\" stroke-width=\"3\" d=\"", shades[shade]);
		cards(scene, left, shade, out);
		str_add(out, "\"/>\n");
		str_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"9\" height=\"9\" fill=\"%s\"/>\n", x, LEGEND_Y,
			 shades[shade]);
		text(out, x + 14, LEGEND_Y + 9, "start", meaning[shade]);
	}
	str_add(out, "</svg>\n");
}
