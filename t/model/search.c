
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


/*
 * Every move in every state, what costs least first:
 *
 *     model [STATES [PAIR]]
 *
 * ends after so many STATES, 0: never.  Before that each pair of kinds of what
 * costs something is looked at alone, up to PAIR states.
 *
 * Of a state that was seen its fingerprint is kept, where it came from and by
 * which picks: the story of one is told by making them once more.
 */


#define MODEL_COSTS   64
#define MODEL_PICKS   24
#define MODEL_BLOCK   (16 << 20)

/* what of a world is kept: most of it is zero */
#define MODEL_WORDS   ((sizeof(model_world_t) + 7) / 8)
#define MODEL_MAP     ((MODEL_WORDS + 63) / 64)


typedef struct {
    uint64_t                    print;
    uint64_t                   *world;      /* when its moves were made */
    uint32_t                    parent;
    uint32_t                    picks;
    unsigned char               cost;
} model_state_t;


typedef struct model_block_s  model_block_t;

struct model_block_s {
    model_block_t              *next;
    uint64_t                    data[MODEL_BLOCK / 8];
};


/* states whose moves are still to be made, in the order they were found */

typedef struct {
    uint32_t                   *states;
    ngx_uint_t                  read;
    ngx_uint_t                  n;
    ngx_uint_t                  size;
} model_queue_t;


static void model_search(ngx_uint_t kinds, ngx_uint_t limit);
static void model_tell(const char *end, ngx_uint_t cost);
static void model_forget(void);
static void model_try(uint32_t state);
static void model_world(uint32_t state, model_world_t *w);
static void model_keep(model_world_t *w, uint32_t parent, ngx_uint_t cost);
static ngx_uint_t model_same(uint64_t print, uint32_t **slot);
static void model_more_slots(void);
static uint64_t model_print(model_world_t *w);
static uint64_t *model_pack(model_world_t *w);
static void model_unpack(uint64_t *p, model_world_t *w);
static void model_put(ngx_uint_t cost, uint32_t state);
static uint32_t model_get(ngx_uint_t cost);
static void *model_memory(void *p, size_t size);
static void model_tell_story(uint32_t state);
static ngx_uint_t model_report(void);


ngx_uint_t  model_reached[NGX_KEXEC_EX_STATES][NGX_KEXEC_ON_N];

static model_state_t  *model_states;
static uint32_t       *model_slots;
static ngx_uint_t      model_nslots, model_nstates;
static ngx_uint_t      model_tried, model_made;
static ngx_uint_t      model_all_states, model_all_moves;
static model_queue_t   model_queues[MODEL_COSTS];
static model_block_t  *model_blocks;
static ngx_uint_t      model_left;

/* the picks of the move that is being made */
static ngx_uint_t      model_npicks, model_at;
static ngx_uint_t      model_picks[MODEL_PICKS], model_of[MODEL_PICKS];
static ngx_uint_t      model_cost, model_out, model_replay, model_kinds;
static uint32_t        model_code;

static ngx_uint_t      model_story;
static ngx_uint_t      model_calm;

/* where the move that is being made begins, for the story of a failure */
static uint32_t        model_current;


ngx_uint_t
model_pick(ngx_uint_t n)
{
    ngx_uint_t  value;

    if (model_calm) {
        return 0;
    }

    if (model_replay) {
        value = model_code % n;
        model_code /= n;
        return value;
    }

    if (model_at == model_npicks) {

        if (model_npicks == MODEL_PICKS) {
            abort();
        }

        model_picks[model_npicks] = 0;
        model_of[model_npicks] = n;
        model_npicks++;
    }

    return model_picks[model_at++];
}


/* the next combination; 0: there is none */

static ngx_uint_t
model_next_picks(void)
{
    while (model_npicks
           && model_picks[model_npicks - 1] + 1 == model_of[model_npicks - 1])
    {
        model_npicks--;
    }

    if (model_npicks == 0) {
        return 0;
    }

    model_picks[model_npicks - 1]++;
    return 1;
}


static uint32_t
model_picks_code(void)
{
    uint64_t    code;
    ngx_uint_t  i;

    code = 0;

    for (i = model_at; i-- > 0; /* void */) {
        code = code * model_of[i] + model_picks[i];
    }

    if (code > UINT32_MAX) {
        abort();
    }

    return code;
}


void
model_costs(model_kind_e kind)
{
    model_cost++;

    if (kind < MODEL_KINDS && !(model_kinds & (1 << kind))) {
        model_out = 1;
    }
}


void
model_beyond(void)
{
    model_out = 1;
}


void
model_say(const char *fmt, ...)
{
    va_list  args;

    if (model_story) {
        va_start(args, fmt);
        vprintf(fmt, args);
        va_end(args);
    }
}


void
model_check(ngx_uint_t holds, const char *name)
{
    if (holds) {
        return;
    }

    if (model_story) {
        printf("FAILED: %s\n", name);
        exit(1);
    }

    printf("after %lu states:\n", (unsigned long) model_nstates);

    model_tell_story(model_current);
    exit(1);
}


int
main(int argc, char **argv)
{
    ngx_uint_t  a, b, limit, pair;

    limit = (argc > 1) ? strtoul(argv[1], NULL, 10) : 0;
    pair = (argc > 2) ? strtoul(argv[2], NULL, 10) : 0;

    setvbuf(stdout, NULL, _IOLBF, 0);

    /* what is rare is found where little else happens */

    for (a = 0; a < MODEL_KINDS && pair; a++) {
        for (b = a; b < MODEL_KINDS; b++) {
            model_search(1 << a | 1 << b, pair);
        }
    }

    model_search((1 << MODEL_KINDS) - 1, limit);

    return model_report();
}


/* from the beginning; 0: to the end, however far that is */

static void
model_search(ngx_uint_t kinds, ngx_uint_t limit)
{
    uint32_t        state;
    ngx_uint_t      cost;
    model_world_t   w;

    model_kinds = kinds;

    model_forget();

    model_npicks = 0;

    do {
        ngx_memzero(&w, sizeof(model_world_t));

        model_at = 0;
        model_cost = 0;
        model_out = 0;
        model_begin(&w);

        if (!model_out) {
            model_keep(&w, 0, 0);
        }

    } while (model_next_picks());

    for (cost = 0; cost < MODEL_COSTS; cost++) {

        state = model_get(cost);

        if (state == 0) {
            break;
        }

        do {
            if (limit && model_nstates > limit) {
                model_tell("there are more", cost);
                return;
            }

            model_try(state);

            state = model_get(cost);

        } while (state);

        if (kinds == (1 << MODEL_KINDS) - 1) {
            printf("model: all that cost %lu are tried, %lu\n",
                   (unsigned long) cost, (unsigned long) model_tried);
        }
    }

    model_tell("that is all", cost);
}


/* what one search has found */

static void
model_tell(const char *end, ngx_uint_t cost)
{
    ngx_uint_t  i;

    static const char  *names[] = {
        "code", "lies", "deaths", "messages", "link", "calls", "others",
        "time", "worker"
    };

    for (i = 0; i < MODEL_KINDS; i++) {
        if (model_kinds & (1 << i)) {
            printf("%s ", names[i]);
        }
    }

    printf("\n    %lu states, %lu of them tried, %lu moves; all that cost "
           "less than %lu, %s\n", (unsigned long) model_nstates - 1,
           (unsigned long) model_tried, (unsigned long) model_made,
           (unsigned long) cost, end);

    model_all_states += model_nstates - 1;
    model_all_moves += model_made;
}


static void
model_forget(void)
{
    ngx_uint_t     i;
    model_block_t  *next;

    for (i = 0; i < MODEL_COSTS; i++) {
        free(model_queues[i].states);
        ngx_memzero(&model_queues[i], sizeof(model_queue_t));
    }

    while (model_blocks) {
        next = model_blocks->next;
        free(model_blocks);
        model_blocks = next;
    }

    model_left = 0;

    if (model_slots) {
        ngx_memzero(model_slots, model_nslots * sizeof(uint32_t));

    } else {
        model_more_slots();
    }

    /* the first is none: what begins has it as its parent */

    model_nstates = 1;
    model_tried = 0;
    model_made = 0;
}


/* all moves from there, and silence */

static void
model_try(uint32_t state)
{
    ngx_uint_t     cost;
    model_world_t  from, w;

    model_world(state, &from);

    model_states[state].world = model_pack(&from);

    cost = model_states[state].cost;

    model_tried++;
    model_current = state;
    model_npicks = 0;

    do {
        w = from;

        model_at = 0;
        model_cost = 0;
        model_out = 0;

        if (!model_move(&w) || model_out) {
            continue;
        }

        model_made++;

        model_keep(&w, state, cost + model_cost);

    } while (model_next_picks());

    if (!from.e.done) {
        model_at = 0;
        model_calm = 1;
        model_silent(&from);
        model_calm = 0;
    }
}


/* what is not kept is made again, from where it was found */

static void
model_world(uint32_t state, model_world_t *w)
{
    uint32_t  parent;

    parent = model_states[state].parent;

    model_code = model_states[state].picks;
    model_replay = 1;

    if (parent) {
        model_unpack(model_states[parent].world, w);
        (void) model_move(w);

    } else {
        ngx_memzero(w, sizeof(model_world_t));
        model_begin(w);
    }

    model_replay = 0;

    model_canonical(w);
}


static void
model_keep(model_world_t *w, uint32_t parent, ngx_uint_t cost)
{
    uint32_t       *slot;
    uint64_t        print;
    model_state_t  *state;

    model_canonical(w);

    print = model_print(w);

    if (model_same(print, &slot)) {
        state = &model_states[*slot];

        if (state->cost <= cost) {
            return;
        }

    } else {

        *slot = model_nstates++;

        state = &model_states[*slot];

        state->print = print;
        state->world = NULL;

    }

    state->cost = cost;
    state->parent = parent;
    state->picks = model_picks_code();

    model_put(cost, *slot);

    if (2 * model_nstates > model_nslots) {
        model_more_slots();
    }
}


static ngx_uint_t
model_same(uint64_t print, uint32_t **slot)
{
    ngx_uint_t  i;

    for (i = print & (model_nslots - 1);
         model_slots[i];
         i = (i + 1) & (model_nslots - 1))
    {
        if (model_states[model_slots[i]].print == print) {
            *slot = &model_slots[i];
            return 1;
        }
    }

    *slot = &model_slots[i];
    return 0;
}


static void
model_more_slots(void)
{
    uint32_t    *slot;
    ngx_uint_t   i;

    model_nslots = model_nslots ? 2 * model_nslots : 1 << 20;

    model_states = model_memory(model_states,
                                model_nslots / 2 * sizeof(model_state_t)
                                + sizeof(model_state_t));
    model_slots = model_memory(model_slots, model_nslots * sizeof(uint32_t));

    ngx_memzero(model_slots, model_nslots * sizeof(uint32_t));

    for (i = 1; i < model_nstates; i++) {
        (void) model_same(model_states[i].print, &slot);
        *slot = i;
    }
}


static uint64_t
model_print(model_world_t *w)
{
    uint64_t    h, *p;
    ngx_uint_t  i;

    h = 0x9e3779b97f4a7c15;
    p = (uint64_t *) w;

    for (i = 0; i < sizeof(model_world_t) / 8; i++) {

        if (p[i]) {
            h = (h ^ p[i] ^ (i << 56)) * 0xff51afd7ed558ccd;
            h = (h ^ (h >> 32)) * 0xc4ceb9fe1a85ec53;
            h ^= h >> 29;
        }
    }

    return h;
}


/* which words are not zero, and those */

static uint64_t *
model_pack(model_world_t *w)
{
    uint64_t       *p, *src, *start;
    ngx_uint_t      i;
    model_block_t  *block;

    if (model_left < MODEL_MAP + MODEL_WORDS) {
        block = model_memory(NULL, sizeof(model_block_t));

        block->next = model_blocks;
        model_blocks = block;

        model_left = MODEL_BLOCK / 8;
    }

    start = model_blocks->data + MODEL_BLOCK / 8 - model_left;
    src = (uint64_t *) w;
    p = start + MODEL_MAP;

    ngx_memzero(start, MODEL_MAP * 8);

    for (i = 0; i < sizeof(model_world_t) / 8; i++) {

        if (src[i]) {
            start[i / 64] |= (uint64_t) 1 << (i % 64);
            *p++ = src[i];
        }
    }

    model_left -= p - start;

    return start;
}


static void
model_unpack(uint64_t *p, model_world_t *w)
{
    uint64_t    *map, *dst;
    ngx_uint_t   i;

    map = p;
    p += MODEL_MAP;
    dst = (uint64_t *) w;

    for (i = 0; i < sizeof(model_world_t) / 8; i++) {
        dst[i] = (map[i / 64] & ((uint64_t) 1 << (i % 64))) ? *p++ : 0;
    }
}


static void
model_put(ngx_uint_t cost, uint32_t state)
{
    model_queue_t  *queue;

    if (cost >= MODEL_COSTS) {
        abort();
    }

    queue = &model_queues[cost];

    if (queue->n == queue->size) {
        queue->size = queue->size ? 2 * queue->size : 4096;
        queue->states = model_memory(queue->states,
                                     queue->size * sizeof(uint32_t));
    }

    queue->states[queue->n++] = state;
}


/* 0: there is none */

static uint32_t
model_get(ngx_uint_t cost)
{
    uint32_t        state;
    model_queue_t  *queue;

    queue = &model_queues[cost];

    while (queue->read < queue->n) {

        state = queue->states[queue->read++];

        if (model_states[state].cost == cost
            && model_states[state].world == NULL)
        {
            /* not found at a lower cost since */

            return state;
        }
    }

    free(queue->states);
    ngx_memzero(queue, sizeof(model_queue_t));

    return 0;
}


static void *
model_memory(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        printf("model: there is no memory for more than %lu states\n",
               (unsigned long) model_nstates);
        exit(2);
    }

    return p;
}


/* how a state came about, from the beginning, and what failed there */

static void
model_tell_story(uint32_t state)
{
    uint32_t        picks[4096], s;
    ngx_uint_t      n;
    uint32_t        last;
    model_world_t   w, quiet;

    last = model_picks_code();
    n = 0;

    for (s = state; s && n < 4096; s = model_states[s].parent) {
        picks[n++] = model_states[s].picks;
    }

    model_story = 1;
    model_replay = 1;

    if (n) {
        model_code = picks[--n];
        model_begin(&w);
        model_canonical(&w);

        while (n) {
            model_code = picks[--n];
            (void) model_move(&w);
            model_canonical(&w);
        }

        quiet = w;

        if (model_at) {
            model_code = last;
            (void) model_move(&w);
        }

        printf("silence\n");
        model_calm = 1;
        model_silent(&quiet);

    } else {
        model_code = last;
        model_begin(&w);
    }
}


static ngx_uint_t
model_report(void)
{
    ngx_uint_t                 i, k, n, cells, of, unseen;
    ngx_kexec_machine_event_t  ev;

    of = 0;
    cells = 0;
    unseen = 0;

    for (i = 0; i < NGX_KEXEC_EX_DONE; i++) {

        for (n = 0, k = 0; k < NGX_KEXEC_ON_N; k++) {

            n += (model_reached[i][k] != 0);

            if (!(ngx_kexec_machine_states[i].events & ((uint64_t) 1 << k))) {
                continue;
            }

            of++;

            if (model_reached[i][k]) {
                cells++;
                continue;
            }

            ev.what = k;
            ev.n = 0;

            printf("not seen: %s in %s\n", ngx_kexec_machine_event_name(&ev),
                   ngx_kexec_machine_states[i].name);
        }

        if (n == 0) {
            printf("%s was never reached\n", ngx_kexec_machine_states[i].name);
            unseen = 1;
        }
    }

    printf("model: %lu states, %lu moves, %lu of %lu cells of the table; all "
           "invariants hold\n", (unsigned long) model_all_states,
           (unsigned long) model_all_moves, (unsigned long) cells,
           (unsigned long) of);

    return unseen;
}
