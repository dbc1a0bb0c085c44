
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


#if (NGX_KEXEC_TEST)


/*
 * What has to hold behind each event: the table of states, and which flags go
 * together.  Sanitized builds, unit tests and the model look after each.
 */


static const char *ngx_kexec_machine_check_state(ngx_kexec_machine_t *m);
static const char *ngx_kexec_machine_check_link(ngx_kexec_machine_t *m);
static const char *ngx_kexec_machine_check_asks(ngx_kexec_machine_t *m);
static const char *ngx_kexec_machine_check_end(ngx_kexec_machine_t *m);
static const char *ngx_kexec_machine_check_limit(ngx_kexec_machine_t *m);


#define in(name)     (m->state == NGX_KEXEC_EX_##name)
#define waits(name)  ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_##name)
#define calls(name)  (m->call == NGX_KEXEC_CALL_##name)
#define reach(name)  (m->reach == NGX_KEXEC_REACH_##name)

#define must(holds)                                                           \
    if (!(holds)) {                                                           \
        return #holds;                                                        \
    }

/* where one thing is, the other has to be */

#define implies(one, other)                                                   \
    if ((one) && !(other)) {                                                  \
        return #one " without " #other;                                       \
    }


const char *
ngx_kexec_machine_check(ngx_kexec_machine_t *m)
{
    const char  *broken;

    broken = ngx_kexec_machine_check_state(m);

    if (broken || in(DROPPING) || in(LEAVING) || in(DONE)) {

        /* what else is known there is for nobody any more */

        return broken;
    }

    broken = ngx_kexec_machine_check_link(m);

    if (broken == NULL) {
        broken = ngx_kexec_machine_check_asks(m);
    }

    if (broken == NULL) {
        broken = ngx_kexec_machine_check_end(m);
    }

    return broken ? broken : ngx_kexec_machine_check_limit(m);
}


static const char *
ngx_kexec_machine_check_state(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_state_t  *state;

    state = &ngx_kexec_machine_states[m->state];

    must((m->waits & ~state->waits) == 0);
    must(m->call == NGX_KEXEC_CALL_NONE
         || (state->calls & ((ngx_uint_t) 1 << m->call)));

    implies(in(DROPPING), m->conf.create);
    implies(m->made, m->conf.create && in(DONE));
    implies(waits(LAST), m->shutdown);

    implies(m->viewer, !m->conf.create && !m->shutdown && !m->unended);
    implies(m->viewer, m->cancel != NGX_KEXEC_CANCEL_CLIENT);
    implies(m->viewer, ngx_kexec_machine_before(m)
                       || in(SENT) || in(BUSY) || in(ENDING));

    return NULL;
}


/* the kernel, and the link to it */

static const char *
ngx_kexec_machine_check_link(ngx_kexec_machine_t *m)
{
    implies(m->reach, !in(QUEUED) && !in(SESSION) && m->facts.kernel);
    implies(reach(OPENING), m->fresh);
    implies(m->fresh, m->reach);

    implies(m->seen, reach(OPEN) || m->deaf);
    implies(m->foreign, m->reach || m->deaf);
    implies(m->counted, reach(OPEN));
    implies(m->other, !reach(OPEN) && m->deaf);

    /* a lost link is opened again */

    must(waits(CONNECT) == reach(DOWN));
    implies(waits(LINK), !reach(OPEN));

    implies(in(LINKING), !reach(OPEN));
    implies(in(PROBING), reach(OPEN));
    implies(in(SETUP), reach(OPEN) || reach(DOWN));
    implies(in(SETUP), m->facts.ready && !m->fresh && !m->recover);

    implies(m->held, m->facts.kernel && !in(BUSY));
    implies(m->held_asks, m->links == 0 && waits(HELD));

    return NULL;
}


/* what is on its way to the kernel */

static const char *
ngx_kexec_machine_check_asks(ngx_kexec_machine_t *m)
{
    must(m->fence.sent == waits(FENCE));
    implies(waits(HELD), m->fence.sent);

    implies(m->silent.sent, in(SETUP) || in(RESTORING));
    implies(m->silent.sent, waits(SETUP) || m->fence.sent);
    implies(waits(SETUP), m->silent.sent);

    implies(m->fetching, in(SETUP) || in(LINKING));
    implies(m->fetching, m->conf.envs && !m->fetched && !m->silent.sent);
    implies(m->marking, in(SETUP) || in(LINKING));
    implies(m->marking, m->facts.prepared && !m->fetching && !m->silent.sent);
    implies(m->env_set, m->facts.owes_restore);

    implies(m->code.sent, m->started);
    implies(in(SENT) || in(BUSY), m->code.sent);
    implies(in(SENT), !m->code.iopub && !m->code.reply && !m->code.idle);

    /* it may start late: then nobody watches, and it is interrupted */

    implies(m->code.sent && ngx_kexec_machine_before(m),
            (in(LINKING) || in(PROBING)) && m->cancel && !m->viewer);

    implies(m->code.reply || m->code.idle, !ngx_kexec_machine_before(m));
    implies(m->cut || m->resent || m->suspect, m->started);
    implies(m->conf.create, !m->started && !in(BARRIER) && !in(RESTARTING));

    return NULL;
}


/* the end of the code, by itself or hastened */

static const char *
ngx_kexec_machine_check_end(ngx_kexec_machine_t *m)
{
    implies(m->exits, m->code.reply);
    implies(m->exits, in(BUSY) || in(ENDING) || in(RESTARTING));
    implies(m->doubted, m->code.reply);
    implies(m->over, m->code.reply || !in(BUSY));
    implies(m->over, !ngx_kexec_machine_before(m) && !in(SENT));
    implies(m->unended, m->cancel == NGX_KEXEC_CANCEL_CLIENT);
    implies(m->unended, !ngx_kexec_machine_before(m) && !in(SENT));

    implies(m->recover, in(LINKING) || in(PROBING) || in(RESTARTING));
    implies(waits(LEFTOVER), m->cancel && !m->viewer);
    implies(waits(ORPHAN), m->recover && m->interrupts == 0);

    implies(m->interrupts || m->unanswered,
            in(LINKING) || in(PROBING) || in(BUSY) || in(ENDING)
            || in(BARRIER) || in(RESTARTING));
    implies(calls(INTERRUPT), m->interrupts);
    implies(waits(STUCK), m->interrupts || in(BARRIER));
    implies(calls(INTERRUPT) || m->unanswered, !m->covers);
    implies(m->interrupts || m->unanswered, m->interrupted);
    implies(m->unanswered, m->unheard);

    return NULL;
}


/* no state lasts without a limit, but for those that the documents name */

static const char *
ngx_kexec_machine_check_limit(ngx_kexec_machine_t *m)
{
    must(m->waits || m->call || in(QUEUED));

    implies(in(SESSION), waits(READY));
    implies(in(LINKING) || in(PROBING) || in(SETUP) || in(SENT),
            waits(READY) || waits(LEFTOVER) || m->cancel);
    implies(in(PROBING), m->fence.sent || m->call || waits(OVER));
    implies(in(BUSY), waits(SILENT));
    implies(in(ENDING), calls(ASK));
    implies(in(BARRIER), waits(BARRIER) || waits(STUCK));
    implies(in(BARRIER), m->fence.sent || m->call || waits(OVER));
    implies(in(RESTORING), waits(RESTORE));
    implies(in(RESTARTING), waits(RESTART) || m->call);

    return NULL;
}


#endif
