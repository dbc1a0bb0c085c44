
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_operation.h>
#include <ngx_kexec_phase.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>


/*
 * Restarts and deletions in any surroundings: a slot that comes or does not, a
 * Jupyter that answers anything or nothing, deletions by others, clients that
 * leave.  Every state that can be reached is gone on from with everything that
 * can happen there; armed timers may end in any order, or late.  What has to
 * hold all the same is checked at each action; and from each state, when all
 * falls silent, timers alone have to bring the operation to its end.
 *
 * What led to a fault is told step by step.
 */


#define STATES   (1 << 17)          /* that there is room for */
#define STEPS    100                /* to come to one */

#define CHOICES  12                 /* in one step */

#define NOTHING  ((uint32_t) -1)

#define NONE     NGX_KEXEC_OP_END_N


/* the claim, as the zone has it */

typedef enum {
    QUEUED = 0,
    GRANTED,                        /* not looked at yet */
    HELD,
    OVER
} claim_t;


typedef struct {
    ngx_kexec_op_t         m;

    claim_t                claim;
    ngx_kexec_op_end_e     over;        /* how others ended it */
    ngx_uint_t             deletion;    /* waits for the slot of a restart */
    ngx_uint_t             felt;        /* by others: it goes on */
    ngx_uint_t             repaired;    /* the zone was */
    ngx_kexec_facts_t      record;      /* of the context */
    ngx_uint_t             owner;       /* the context is ours to change */

    /* Jupyter */
    ngx_kexec_call_e       call;
    ngx_uint_t             made;        /* calls to restart or delete */
    ngx_uint_t             open;        /* one was not answered */
    ngx_msec_t             last;        /* answer, or what there is none to */
    ngx_uint_t             error;       /* the status of the last one */
    ngx_kexec_op_end_e     seen;        /* what that comes to */
    ngx_uint_t             gone;        /* the kernel */
    uint32_t               epoch;       /* of the record, before */

    /* what has happened */
    ngx_uint_t             client;
    ngx_uint_t             leaves;      /* the worker */
    ngx_uint_t             shutdown;    /* its time is nearly over */
    ngx_kexec_op_end_e     answered;    /* all that wait */
    ngx_uint_t             removed;
    ngx_uint_t             abandoned;
    ngx_uint_t             left;
    ngx_uint_t             done;

    /* events to come at once */
    ngx_uint_t             n;
    ngx_kexec_op_event_t   events[4];
} world_t;


/* how a state was come to: what was chosen in the state before it */

typedef struct {
    uint32_t               before;
    u_char                 choice[CHOICES];
} way_t;


/* in a step, one choice after the other; none where all is silent */
static u_char      choice[CHOICES];
static u_char      among[CHOICES];
static ngx_uint_t  nchoices;
static ngx_uint_t  chosen;
static ngx_uint_t  silent;

static uint64_t    found[4 * STATES];
static way_t       ways[STATES];
static world_t     worlds[STATES];
static uint32_t    nways;
static uint32_t    way;             /* of the state at hand */
static ngx_uint_t  story;

/* which events come in which state: each does, and no other one */

#define ON(what)  (1 << NGX_KEXEC_OP_ON_ ## what)

#define ALWAYS    (ON(NOTICE)|ON(CLIENT_LEFT)|ON(WORKER_LEAVES)|ON(TIMER))
#define LOOKED    (ON(QUEUED)|ON(GRANTED)|ON(EVICTED)|ON(ENDED))

static ngx_uint_t  cells[] = {
    ALWAYS|LOOKED|ON(ENTERED)|ON(ABANDONED),    /* queued */
    ALWAYS|ON(ANSWER)|ON(FAILED),               /* calling */
    ALWAYS|ON(ANSWER)|ON(FAILED),               /* checking */
    ALWAYS|LOOKED                               /* pausing */
};

static ngx_uint_t  seen[NGX_KEXEC_OP_STATES][NGX_KEXEC_OP_ON_N];

/* how they ended */
static ngx_uint_t  ended[2][NGX_KEXEC_OP_END_N];


static void  tell_story(void);


/* one of n; each in its turn */

static ngx_uint_t
any(ngx_uint_t n)
{
    if (chosen == nchoices) {
        assert_true(nchoices < CHOICES);

        choice[nchoices] = 0;
        among[nchoices++] = n;
    }

    return choice[chosen++];
}


static void
check(world_t *w, ngx_uint_t holds, const char *what)
{
    if (holds) {
        return;
    }

    if (!story) {
        tell_story();
    }

    fail_msg("run %u, state %s: %s", (unsigned) nways,
             ngx_kexec_op_states[w->m.state].name, what);
}


static void
push(world_t *w, ngx_kexec_op_on_e what, ngx_uint_t n)
{
    check(w, w->n < 4, "too many events at once");

    w->events[w->n].what = what;
    w->events[w->n].n = n;
    w->n++;
}


/* the hands, at the claim */

static void
look(world_t *w)
{
    if (w->claim == GRANTED) {
        w->claim = HELD;
    }

    switch (w->claim) {

    case QUEUED:
        push(w, NGX_KEXEC_OP_ON_QUEUED, 0);
        return;

    case OVER:
        push(w, NGX_KEXEC_OP_ON_ENDED, w->over);
        w->seen = w->over;
        return;

    default:
        break;
    }

    if (w->deletion) {
        push(w, NGX_KEXEC_OP_ON_EVICTED, 0);
        w->seen = NGX_KEXEC_OP_END_DELETED;
        return;
    }

    w->m.facts = w->record;
    w->epoch = w->record.epoch;
    w->owner = 1;

    if (w->m.restart ? !w->record.kernel : !w->record.session) {
        w->seen = NGX_KEXEC_OP_END_OK;
    }

    push(w, NGX_KEXEC_OP_ON_GRANTED, 0);
}


static void
call(world_t *w, ngx_kexec_call_e what)
{
    check(w, w->call == NGX_KEXEC_CALL_NONE, "two calls at a time");

    if (what == NGX_KEXEC_CALL_CHECK) {
        check(w, w->m.restart && w->error >= 500, "a question for no reason");

    } else {
        check(w, w->seen != NGX_KEXEC_OP_END_DELETED,
              "a context is restarted that is to be deleted");
        check(w, w->claim == HELD && w->owner, "a call without the slot");
        check(w, what == (w->m.restart ? NGX_KEXEC_CALL_RESTART
                                       : NGX_KEXEC_CALL_DROP),
              "another call than was asked for");
        check(w, what == NGX_KEXEC_CALL_RESTART ? w->record.kernel
                                                : w->record.session,
              "a call about nothing");
        check(w, w->seen != NGX_KEXEC_OP_END_OK, "a call after its success");
        check(w, !w->open, "a call that Jupyter may still be at is repeated");
        check(w, w->made < 6, "a call is repeated for ever");
        check(w, !w->made || w->repaired || w->m.now - w->last >= 500,
              "a call is repeated without a pause");
    }

    if (!silent && any(2)) {
        push(w, NGX_KEXEC_OP_ON_FAILED, 0);
        w->last = w->m.now;

        if (what != NGX_KEXEC_CALL_CHECK) {
            w->seen = NGX_KEXEC_OP_END_NO_MEMORY;
        }

        return;
    }

    w->call = what;

    if (what != NGX_KEXEC_CALL_CHECK) {
        w->made++;
    }
}


static void
leave(world_t *w)
{
    check(w, !w->left, "the slot is given on twice");
    check(w, w->call == NGX_KEXEC_CALL_NONE,
          "the slot is given on while Jupyter is at it");

    w->left = 1;

    if (w->claim != HELD || !w->made || w->repaired) {
        return;
    }

    if (!w->m.restart) {
        check(w, w->removed || w->seen != NGX_KEXEC_OP_END_OK,
              "a deletion is taken back");
        return;
    }

    check(w, w->seen == NGX_KEXEC_OP_END_DELETED
             || w->seen == NGX_KEXEC_OP_END_NO_MEMORY
             || w->answered == w->seen,
          "restarts that wait are not told how this one ended");

    if (w->seen == NGX_KEXEC_OP_END_OK) {
        check(w, w->record.epoch != w->epoch && !w->record.ready
                 && !w->record.prepared,
              "the next one takes the kernel's new process for the old one");
        check(w, w->record.kernel == !w->gone,
              "whether the record has a kernel");
    }

    check(w, !w->record.ready,
          "the next one trusts a kernel that may have been restarted");
}


static void
tell(world_t *w, ngx_kexec_op_end_e end)
{
    check(w, w->client, "a client is told twice, or that is not there");

    if (end == NGX_KEXEC_OP_END_SHUTDOWN) {
        check(w, w->shutdown, "a client is sent away for nothing");
        w->client = 0;
        ended[w->m.restart][end]++;
        return;
    }

    check(w, end != NGX_KEXEC_OP_END_OK || w->seen == NGX_KEXEC_OP_END_OK,
          "a success that nobody has seen");
    check(w, end == w->seen, "a client is told another end");
    check(w, w->left, "a client is told before the slot is given on");

    w->client = 0;
    ended[w->m.restart][end]++;
}


static void
act(world_t *w, ngx_kexec_op_action_t *action)
{
    check(w, !w->done, "something is done after the end");

    switch (action->what) {

    case NGX_KEXEC_OP_DO_LOOK:
        check(w, !w->left, "a look at a claim that was left");
        look(w);
        return;

    case NGX_KEXEC_OP_DO_ABANDON:
        check(w, !w->client, "an operation is given up that somebody wants");

        if (w->claim < HELD && !w->felt) {
            w->claim = OVER;
            w->abandoned = 1;
            w->left = 1;
            push(w, NGX_KEXEC_OP_ON_ABANDONED, 0);
        }

        return;

    case NGX_KEXEC_OP_DO_PHASE:
        check(w, w->claim == HELD, "a phase without the slot");
        check(w, w->m.restart && action->n == NGX_KEXEC_PHASE_RESTARTING,
              "another phase than it is in");
        return;

    case NGX_KEXEC_OP_DO_FACTS:
        check(w, w->owner, "facts about a context that is not known");
        check(w, !w->left, "facts when the slot is given on");
        w->record = w->m.facts;
        return;

    case NGX_KEXEC_OP_DO_REMOVE:
        check(w, !w->m.restart && w->seen == NGX_KEXEC_OP_END_OK,
              "a context is removed that was not deleted");
        check(w, !w->left, "a context is removed without the slot");
        w->removed = 1;
        return;

    case NGX_KEXEC_OP_DO_ANSWER:
        check(w, w->m.restart && !w->left,
              "others are answered by no restart");
        check(w, action->n == w->seen, "others are told another end");
        w->answered = action->n;
        return;

    case NGX_KEXEC_OP_DO_LEAVE:
        leave(w);
        return;

    case NGX_KEXEC_OP_DO_CALL:
        call(w, action->n);
        return;

    case NGX_KEXEC_OP_DO_LOG:
        check(w, w->seen == NGX_KEXEC_OP_END_REFUSED
                 || w->seen == NGX_KEXEC_OP_END_UNREACHABLE,
              "a failure in the log that was none");
        return;

    case NGX_KEXEC_OP_DO_TELL:
        tell(w, action->n);
        return;

    default: /* NGX_KEXEC_OP_DO_DONE */
        check(w, w->left, "an end that keeps the slot");
        check(w, w->abandoned || w->seen != NONE,
              "an operation is given up that others felt");
        check(w, !w->client, "a client is left behind");
        w->done = 1;
        return;
    }
}


static void
happens(world_t *w, ngx_kexec_op_event_t *ev)
{
    ngx_uint_t       i, before;
    ngx_kexec_op_t  *m;

    m = &w->m;
    before = m->state;

    seen[before][ev->what]++;

    ngx_kexec_op(m, ev);

    if (story) {
        print_message("%8lu  %s -> %s by event %d:%lu\n",
                      (unsigned long) m->now,
                      ngx_kexec_op_states[before].name,
                      ngx_kexec_op_states[m->state].name,
                      ev->what, (unsigned long) ev->n);
    }

    for (i = 0; i < m->nactions; i++) {

        if (story) {
            print_message("          does %d:%lu\n", m->actions[i].what,
                          (unsigned long) m->actions[i].n);
        }

        act(w, &m->actions[i]);
    }

    check(w, (m->state == NGX_KEXEC_OP_DONE) == w->done,
          "an end that nobody is told of");

    if (w->done) {
        return;
    }

    check(w, !w->left || w->n, "it goes on after the slot was given on");
    check(w, m->client == w->client, "whether there is a client");
    check(w, !w->client || !w->leaves
             || (m->waits & (1 << NGX_KEXEC_OP_WAIT_SHUTDOWN)),
          "a worker that ends leaves a client without a word");

    if (w->n == 0) {
        check(w, m->waits || w->call, "nothing is waited for");
        check(w, (w->call != NGX_KEXEC_CALL_NONE)
                 == (m->state == NGX_KEXEC_OP_CALLING
                     || m->state == NGX_KEXEC_OP_CHECKING),
              "whether a call is under way");
    }
}


static void
settle(world_t *w)
{
    ngx_kexec_op_event_t  ev;

    while (w->n && !w->done) {
        ev = w->events[0];
        w->n--;
        memmove(w->events, w->events + 1, w->n * sizeof(ngx_kexec_op_event_t));
        happens(w, &ev);
    }

    w->n = 0;
}


static void
event(world_t *w, ngx_kexec_op_on_e what, ngx_uint_t n)
{
    push(w, what, n);
    settle(w);
}


/* the next timer, if there is one, or any */

static void
timer(world_t *w)
{
    ngx_uint_t       i, first;
    ngx_kexec_op_t  *m;

    m = &w->m;
    first = NGX_KEXEC_OP_WAIT_N;

    for (i = 0; i < NGX_KEXEC_OP_WAIT_N; i++) {

        if ((m->waits & (1 << i))
            && (first == NGX_KEXEC_OP_WAIT_N
                || (silent ? m->wait[i] < m->wait[first] : any(2))))
        {
            first = i;
        }
    }

    if (first == NGX_KEXEC_OP_WAIT_N) {
        return;
    }

    m->now = ngx_max(m->now, m->wait[first]);

    w->shutdown = (first == NGX_KEXEC_OP_WAIT_SHUTDOWN);

    event(w, NGX_KEXEC_OP_ON_TIMER, first);
}


/* what a status comes to; NONE: the call is made again, or asked about */

static void
answer(world_t *w, ngx_uint_t status)
{
    ngx_uint_t        gone, check;
    ngx_kexec_call_e  call;

    call = w->call;
    w->call = NGX_KEXEC_CALL_NONE;
    w->last = w->m.now;

    check = (call == NGX_KEXEC_CALL_CHECK);
    gone = status == 404 || (status == 410 && !check);

    if (!check) {
        w->error = status;
        w->open = (status == 0);
    }

    if (gone || (!check && status >= 200 && status < 300)) {
        w->gone = gone;
        w->seen = NGX_KEXEC_OP_END_OK;

    } else if (w->error == 0) {
        w->seen = NGX_KEXEC_OP_END_UNREACHABLE;

    } else {
        w->seen = NGX_KEXEC_OP_END_REFUSED;
    }

    event(w, NGX_KEXEC_OP_ON_ANSWER, status);
}


/* something happens to the claim */

static void
zone(world_t *w)
{
    switch (any(6)) {

    case 0:

        if (w->claim == QUEUED) {
            w->claim = GRANTED;
        }

        break;

    case 1:

        if (w->claim < HELD) {
            w->claim = OVER;
            w->over = any(NGX_KEXEC_OP_END_NO_MEMORY);

            if (!w->m.restart && w->over < NGX_KEXEC_OP_END_DELETED) {
                w->over = NGX_KEXEC_OP_END_DELETED;
            }

        } else if (w->claim == HELD) {

            /* of two holders that a damaged zone has, one goes */

            w->repaired = 1;
            w->deletion = 0;
            w->claim = any(2) ? OVER : QUEUED;
            w->over = NGX_KEXEC_OP_END_LOST;
        }

        break;

    case 2:

        if (w->m.restart && w->claim == HELD) {
            w->deletion = 1;
        }

        break;

    case 3:
        w->felt = 1;
        break;

    default: /* a notice for nothing */
        break;
    }

    event(w, NGX_KEXEC_OP_ON_NOTICE, 0);
}


static void
step(world_t *w)
{
    static ngx_uint_t  statuses[] = { 200, 204, 0, 500, 503, 404, 410, 403 };

    w->m.now += 250 * any(2);

    switch (any(4)) {

    case 0:
        timer(w);
        return;

    case 1:

        if (w->call) {
            answer(w, statuses[any(8)]);
        }

        return;

    case 2:

        if (w->client && any(2)) {
            w->client = 0;
            event(w, NGX_KEXEC_OP_ON_CLIENT_LEFT, 0);

        } else {
            w->leaves = 1;
            event(w, NGX_KEXEC_OP_ON_WORKER_LEAVES, 1000 * any(2));
        }

        return;

    default:
        zone(w);
        return;
    }
}


/* nobody says anything any more: slots come, calls end by their limits */

static void
fall_silent(world_t *w)
{
    ngx_uint_t  i;
    ngx_msec_t  limit;

    limit = w->m.now + 600000;

    for (i = 0; i < 1000 && !w->done && w->m.now <= limit; i++) {

        if (w->claim == QUEUED) {
            w->claim = GRANTED;
        }

        if (w->call) {
            w->m.now += 60000;
            answer(w, 0);

        } else {
            timer(w);
        }
    }

    check(w, w->done, "timers alone do not end it");
}


static void
begin(world_t *w)
{
    memset(w, 0, sizeof(world_t));

    w->seen = NONE;
    w->answered = NONE;

    w->m.now = 1000000;
    w->m.restart = any(2);
    w->client = any(2);
    w->m.client = w->client;

    w->felt = any(2);
    w->claim = any(2) ? HELD : QUEUED;

    w->record.epoch = 1;
    w->record.session = any(2);
    w->record.kernel = w->record.session && any(2);
    w->record.ready = w->record.kernel && any(2);
    w->record.prepared = w->record.ready ? any(2) : 0;
    w->m.facts = w->record;

    event(w, NGX_KEXEC_OP_ON_ENTERED, w->claim == HELD);
}


/* nothing happens behind the end */

static void
end(world_t *w)
{
    ngx_uint_t            i;
    ngx_kexec_op_event_t  ev;

    for (i = 0; i < NGX_KEXEC_OP_ON_N; i++) {
        memset(&ev, 0, sizeof(ngx_kexec_op_event_t));
        ev.what = i;
        happens(w, &ev);
    }
}


/* was such a state not there before?  Times count from now on */

static ngx_uint_t
is_new(world_t *w)
{
    size_t      i;
    u_char     *p;
    uint64_t    hash;
    ngx_uint_t  k;
    world_t     one;

    memcpy(&one, w, sizeof(world_t));

    for (k = 0; k < NGX_KEXEC_OP_WAIT_N; k++) {
        one.m.wait[k] = (w->m.waits & (1 << k)) && w->m.wait[k] > w->m.now
                        ? w->m.wait[k] - w->m.now : 0;
    }

    one.last = w->made ? ngx_min(w->m.now - w->last, 500) : 0;
    one.m.now = 0;
    one.m.nactions = 0;

    memset(one.m.actions, 0, sizeof(one.m.actions));
    memset(one.events, 0, sizeof(one.events));

    hash = 14695981039346656037U;
    p = (u_char *) &one;

    for (i = 0; i < sizeof(world_t); i++) {
        hash = (hash ^ p[i]) * 1099511628211U;
    }

    hash += (hash == 0);

    for (i = hash % (4 * STATES); found[i]; i = (i + 1) % (4 * STATES)) {

        if (found[i] == hash) {
            return 0;
        }
    }

    found[i] = hash;

    return 1;
}


/* the next one of all choices in a step; 0: there is none */

static ngx_uint_t
next(void)
{
    chosen = 0;

    while (nchoices && choice[nchoices - 1] + 1 == among[nchoices - 1]) {
        nchoices--;
    }

    if (nchoices == 0) {
        return 0;
    }

    choice[nchoices - 1]++;

    return 1;
}


static void
remember(void)
{
    assert_true(nways < STATES);

    ways[nways].before = way;
    memcpy(ways[nways].choice, choice, CHOICES);
    nways++;
}


/* all that led to a fault */

static void
tell_story(void)
{
    uint32_t        i, n;
    static world_t  w;
    static way_t   *path[STEPS];

    story = 1;

    if (!silent) {
        remember();
    }

    n = 0;

    for (i = nways - 1; i != NOTHING && n < STEPS; i = ways[i].before) {
        path[n++] = &ways[i];
    }

    nchoices = CHOICES;

    while (n--) {
        memcpy(choice, path[n]->choice, CHOICES);
        chosen = 0;

        if (path[n]->before == NOTHING) {
            begin(&w);

        } else {
            step(&w);
        }
    }

    silent = 1;
    fall_silent(&w);
}


/*
 * All that can happen from a state, or at first; what is new of that is put
 * behind the states to be gone on from.
 */

static void
go_on(world_t *from)
{
    world_t  w;

    nchoices = 0;

    do {
        chosen = 0;

        if (from) {
            memcpy(&w, from, sizeof(world_t));
            step(&w);

        } else {
            begin(&w);
        }

        if (w.done) {
            end(&w);
            continue;
        }

        if (is_new(&w)) {
            remember();
            memcpy(&worlds[nways - 1], &w, sizeof(world_t));

            silent = 1;
            fall_silent(&w);
            silent = 0;
        }

    } while (next());
}


static void
test_states(void **state)
{
    ngx_uint_t  i, k;

    (void) state;

    way = NOTHING;
    go_on(NULL);

    for (way = 0; way < nways; way++) {
        go_on(&worlds[way]);
    }

    print_message("%lu states, that is all\n", (unsigned long) nways);

    for (i = 0; i < NGX_KEXEC_OP_DONE; i++) {

        for (k = 0; k < NGX_KEXEC_OP_ON_N; k++) {

            if ((seen[i][k] != 0) != ((cells[i] >> k) & 1)) {
                fail_msg("event %lu in state %s came %lu times",
                         (unsigned long) k, ngx_kexec_op_states[i].name,
                         (unsigned long) seen[i][k]);
            }
        }
    }

    for (i = 0; i < NGX_KEXEC_OP_END_N; i++) {
        assert_true(ended[0][i] && ended[1][i]);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
