
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_workers.h"
#include <ngx_kexec_wake.h>


/* slots, queues, operations and notices */


static void
test_queue(void **state)
{
    ngx_uint_t               i;
    ngx_kexec_ref_t          ref, none;
    ngx_kexec_context_t      ctx;
    ngx_kexec_zone_stat_t    stat;

    ref = ready_context(&ctx);

    none = ref;
    none.generation++;
    assert_int_equal(enter(0, none), NGX_DECLINED);
    none.index = 1000000;
    assert_int_equal(enter(0, none), NGX_DECLINED);
    memset(&none, 0, sizeof(none));
    assert_int_equal(enter(0, none), NGX_DECLINED);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.position, 0);

    assert_int_equal(enter(1, ref), NGX_AGAIN);
    be(1);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(3, ref), NGX_AGAIN);

    own[4].claim.context = ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &own[4].claim, 3), NGX_BUSY);
    assert_int_equal(own[4].claim.ref.generation, 0);

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[1].look.position, 1);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 3);

    /* a claim of another worker is nobody's business */

    assert_int_equal(look(2), NGX_KEXEC_CLAIM_NONE);
    own[2].claim.ref.index = record(3) - zone->claims;
    own[2].claim.ref.generation = 12345;
    leave(2);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);

    ngx_kexec_claim_phase(&own[0].claim, NGX_KEXEC_PHASE_RUNNING);
    ngx_kexec_claim_phase(&own[1].claim, NGX_KEXEC_PHASE_RESTORING);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.phase, NGX_KEXEC_PHASE_RUNNING);
    assert_int_equal(ctx.queued, 3);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);
    assert_int_equal(stat.queued, 3);
    assert_int_equal(stat.claims, 4);
    assert_int_equal(stat.dead, 0);

    /* in the order of arrival, and nobody can get in between */

    leave(0);
    assert_int_equal(own[1].notices, 0);
    notices();
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[3].notices, 0);

    assert_int_equal(enter(0, ref), NGX_AGAIN);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);
    leave(3);

    /* number 2 is another worker's, and has the slot by now */

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[0].look.position, 1);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);

    /* the zone has no more records */

    for (i = 2; i < zone->nclaims; i++) {
        memset(&own[5], 0, sizeof(owner_t));
        assert_int_equal(watch(5, ref), NGX_OK);
    }

    owner(6);
    assert_int_equal(enter(6, ref), NGX_ERROR);
    assert_int_equal(watch(6, ref), NGX_ERROR);
    assert_int_equal(operate(6, ref, NGX_KEXEC_CLAIM_DELETE), NGX_ERROR);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[6].claim),
                     NGX_DECLINED);
}


static void
test_notices(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    /* a notice for a claim that is gone, or is another one by now */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    leave(1);
    notices();
    assert_int_equal(own[1].notices, 0);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    assert_int_equal(enter(1, ref), NGX_OK);
    notices();
    assert_int_equal(own[1].notices, 0);
    leave(1);

    /* a worker that nobody can wake finds them as well */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    stub_timers(1);
    assert_int_equal(own[1].notices, 1);
    leave(1);
    own[1].notices = 0;

    /* handlers end each other's claims */

    assert_int_equal(watch(1, ref), NGX_OK);
    assert_int_equal(watch(2, ref), NGX_OK);
    assert_int_equal(watch(3, ref), NGX_OK);
    own[1].leaves = &own[2].claim;
    own[2].leaves = &own[1].claim;
    own[3].leaves = &own[3].claim;

    assert_int_equal(enter(0, ref), NGX_OK);
    notices();
    assert_int_equal(own[1].notices + own[2].notices, 1);
    assert_int_equal(own[3].notices, 1);
    assert_int_equal(own[3].claim.ref.generation, 0);

    leave(1);
    leave(2);
    notices();
    assert_int_equal(own[1].notices + own[2].notices, 1);

    /* a handler that frees the owner of another claim with a notice */

    owner(1);
    own[1].frees = calloc(1, sizeof(owner_t));
    own[1].leaves = own[1].frees;
    own[1].leaves->handler = handler;
    own[1].leaves->data = own[1].frees;
    own[1].leaves->context = ref;

    /* watchers are told in the order of their arrival */

    assert_int_equal(watch(1, ref), NGX_OK);
    assert_int_equal(ngx_kexec_claim_watch(zone, own[1].leaves, 64), NGX_OK);
    leave(0);
    notices();
    assert_int_equal(own[1].notices, 1);
    assert_null(own[1].frees);
    leave(1);

    /* the record is another claim's by now, and that has no notice */

    assert_int_equal(watch(1, ref), NGX_OK);
    assert_int_equal(watch(2, ref), NGX_OK);
    own[1].leaves = &own[2].claim;
    own[1].watches = 1;
    own[1].notices = 0;
    own[2].notices = 0;
    i = own[2].claim.ref.index;
    assert_int_equal(enter(0, ref), NGX_OK);
    notices();
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[2].claim.ref.index, i);
    assert_int_equal(own[2].notices, 0);
    leave(1);
    leave(2);

    /* several notices are one call, and none is lost after a call */

    assert_int_equal(watch(4, ref), NGX_OK);
    ngx_kexec_zone_created(&own[0].claim);
    leave(0);
    assert_int_equal(enter(0, ref), NGX_OK);
    notices();
    assert_int_equal(own[4].notices, 1);
    leave(0);
    notices();
    assert_int_equal(own[4].notices, 2);

    /* a claim's own end is no news for it */

    leave(4);
    notices();
    assert_int_equal(own[4].notices, 2);
}


/* more than fit into one turn */

static void
test_many_notices(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;
    static owner_t        many[200];

    be(WORKERS - 1);

    ref = ready_context(&ctx);

    for (i = 0; i < 200; i++) {
        many[i].claim.handler = handler;
        many[i].claim.data = &many[i];
        many[i].claim.context = ref;
        assert_int_equal(ngx_kexec_claim_watch(zone, &many[i].claim, 200),
                         NGX_OK);
    }

    own[1].claim.context = ref;
    assert_int_equal(ngx_kexec_claim_watch(zone, &own[1].claim, 200), NGX_BUSY);

    assert_int_equal(enter(0, ref), NGX_OK);

    for (i = 0; i < 4; i++) {
        stub_loop(0);
    }

    for (i = 0; i < 200; i++) {
        assert_int_equal(many[i].notices, 1);
        ngx_kexec_claim_leave(&many[i].claim);
    }
}


static void
test_restart(void **state)
{
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.phase, NGX_KEXEC_PHASE_RESTARTING);
    leave(0);

    /* the holder is told, those who wait go, those who come later wait */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    assert_int_equal(operate(3, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(enter(4, ref), NGX_AGAIN);

    notices();
    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[3].notices, 0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(own[1].look.position, 0);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 1);

    /* the second one ends what came after the first, and runs after it */

    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(enter(6, ref), NGX_AGAIN);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[5].look.position, 2);

    leave(0);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[3].look.verdict, NGX_KEXEC_VERDICT_NONE);

    /* evicting spares operations */

    assert_int_equal(enter(7, ref), NGX_AGAIN);
    ngx_kexec_claim_evict(&own[7].claim, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(6), NGX_KEXEC_CLAIM_QUEUED);
    ngx_kexec_claim_evict(&own[3].claim, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(6), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(7), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_QUEUED);

    leave(3);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_HELD);
    leave(5);

    leave(1);
    leave(2);
    leave(4);
    leave(6);
    leave(7);

    /* one that was granted and does not know it yet has no part in it */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    leave(1);

    /* a restart that waits and goes away lets the next one in */

    assert_int_equal(operate(3, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[2].look.verdict, NGX_KEXEC_VERDICT_NONE);
    assert_int_equal(enter(4, ref), NGX_AGAIN);
    leave(3);
    leave(2);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);
    leave(4);

    /* a creator is not disturbed by a restart */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_NONE);
    ngx_kexec_zone_created(&own[0].claim);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
}


/* restarts that one answers, that are too many, that nobody waits for */

static void
test_abandon(void **state)
{
    ngx_kexec_ref_t      ref;
    ngx_kexec_context_t  ctx;

    ref = ready_context(&ctx);

    /* who holds the slot ends it by itself, all that wait end with it */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    be(1);
    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(3, ref), NGX_AGAIN);

    own[4].claim.context = ref;
    assert_int_equal(ngx_kexec_claim_operate(zone, &own[4].claim,
                                             NGX_KEXEC_CLAIM_RESTART, 2),
                     NGX_BUSY);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);

    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_DECLINED);
    ngx_kexec_claim_answer(&own[1].claim, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);

    ngx_kexec_claim_answer(&own[0].claim, NGX_KEXEC_VERDICT_REFUSED);

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_REFUSED);
    assert_int_equal(ngx_kexec_claim_abandon(&own[1].claim), NGX_DECLINED);
    be(1);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_ENDED);
    leave(2);
    be(0);
    leave(1);
    leave(0);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_HELD);

    /* one that ended somebody is done, unless another one is */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_DECLINED);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_OK);
    assert_int_equal(own[0].claim.ref.generation, 0);
    assert_int_equal(ngx_kexec_claim_abandon(&own[1].claim), NGX_DECLINED);
    leave(3);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);

    /* one that waits behind an operation, and ended nobody, is not */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_OK);

    /* nor one that was granted the slot and does not know it yet */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    leave(1);
    assert_int_equal(record(0)->state, NGX_KEXEC_CLAIM_GRANTED);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_OK);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);

    /* a context that is being deleted is gone for all others by then */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    assert_int_equal(ngx_kexec_claim_abandon(&own[0].claim), NGX_DECLINED);
    leave(1);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    leave(0);
}


static void
test_delete(void **state)
{
    ngx_str_t             text;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    text = str("no");
    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(watch(3, ref), NGX_OK);
    assert_int_equal(operate(4, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[2].look.verdict, NGX_KEXEC_VERDICT_DELETED);

    notices();
    assert_int_equal(own[3].notices, 1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_DELETING);
    assert_int_equal(ngx_kexec_zone_list(zone, NULL)->nelts, 0);

    assert_int_equal(enter(5, ref), NGX_DECLINED);
    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_RESTART), NGX_DECLINED);

    leave(5);
    leave(0);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);
    notices();
    assert_int_equal(own[3].notices, 2);

    ngx_kexec_zone_remove(&own[4].claim);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_NONE);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);
    notices();
    assert_int_equal(own[3].notices, 3);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_WATCHING);

    leave(1);
    leave(2);
    leave(3);

    /* a deletion that does not come to its end */

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_false(ctx.dirty);
    leave(0);

    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_false(ctx.dirty);
    assert_false(ctx.ready);

    /* of one that is being created: it is created, and then deleted */

    new_context(&ctx, "python", 0);
    ref = ctx.ref;
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ref = ctx.ref;
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    ngx_kexec_zone_created(&own[0].claim);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_DELETING);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    ngx_kexec_zone_remove(&own[1].claim);

    /* it is given up, and the deletion still has to look for it */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ref = ctx.ref;
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);

    /* it fails, and nothing is left to delete */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    leave(1);

    /* it is not deleted after all */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_CREATING);
    leave(0);
}


static void
test_delete_twice(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    /* the first one is carried out */

    ref = ready_context(&ctx);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_NONE);
    ngx_kexec_zone_remove(&own[0].claim);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    leave(1);

    /* it is not: the context is never seen again in between */

    for (i = 0; i < 2; i++) {
        ref = ready_context(&ctx);

        if (i) {
            assert_int_equal(enter(2, ref), NGX_OK);
        }

        assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE),
                         i ? NGX_AGAIN : NGX_OK);
        assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
        leave(0);
        assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
        assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_DELETING);
        assert_int_equal(enter(0, ref), NGX_DECLINED);
        leave(2);
        assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
        ngx_kexec_zone_remove(&own[1].claim);
        assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);
    }

    /* neither is */

    ref = ready_context(&ctx);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(0);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_false(ctx.ready);

    /* as many wait as there may */

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);

    for (i = 1; i <= 2; i++) {
        owner(i)->claim.context = ref;
        assert_int_equal(ngx_kexec_claim_operate(zone, &own[i].claim,
                                                 NGX_KEXEC_CLAIM_DELETE, 1),
                         i == 1 ? NGX_AGAIN : NGX_BUSY);
    }

    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);
}


static void
test_interrupt(void **state)
{
    ngx_kexec_ref_t       ref, none, holder, other;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);
    memset(&none, 0, sizeof(none));

    assert_int_equal(ngx_kexec_claim_interrupt(zone, &none, &holder),
                     NGX_DECLINED);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_DONE);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);

    be(1);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_OK);
    be(0);

    notices();
    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_true(own[0].look.interrupt);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_false(own[0].look.interrupt);

    assert_true(ngx_kexec_claim_holds(zone, &ref, &holder));
    leave(0);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    assert_false(own[1].look.interrupt);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &other), NGX_OK);
    assert_true(other.index != holder.index
                || other.generation != holder.generation);
    leave(1);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_DONE);
    leave(0);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder),
                     NGX_DECLINED);
}


static void
test_watch(void **state)
{
    ngx_kexec_ref_t       ref, none;
    ngx_kexec_context_t   ctx;

    memset(&none, 0, sizeof(none));
    assert_int_equal(watch(0, none), NGX_DECLINED);

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[1].claim), NGX_OK);
    ref = ctx.ref;

    be(1);
    assert_int_equal(watch(0, ref), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_WATCHING);
    be(0);

    ngx_kexec_zone_created(&own[1].claim);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 1);

    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 1);

    leave(1);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 2);

    leave(2);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 3);

    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 4);

    ngx_kexec_zone_remove(&own[2].claim);
    be(1); notices();
    assert_int_equal(own[0].notices, 5);

    /* it keeps its record, and nothing else happens to it */

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_WATCHING);
    leave(0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);
}


static void
test_grants(void **state)
{
    ngx_kexec_ref_t         ref, holder;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   stat;

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    be(1);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(2);
    assert_int_equal(enter(3, ref), NGX_AGAIN);
    assert_int_equal(enter(4, ref), NGX_AGAIN);
    be(0);
    leave(0);

    /* worker 1 does not answer: 1 and 2 are passed over */

    be(2);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 2);

    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_OK);
    record(1)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 2);

    record(2)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_HELD);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    /* it does again: it has not lost its place, and was not interrupted */

    be(1);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[1].look.position, 1);
    assert_false(own[1].look.interrupt);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[2].look.position, 2);
    be(2);
    leave(3);
    be(1);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);

    /* an acknowledged one is never taken away */

    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    record(2)->granted -= 1000000;
    be(2);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_QUEUED);
    be(1);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    leave(2);

    /* nobody else there: the same one gets another grant, and a notice */

    be(2);
    notices();
    own[4].notices = 0;
    record(4)->granted -= NGX_KEXEC_GRANT_TIME;
    be(0);
    ngx_kexec_zone_lock(zone);
    ngx_kexec_slot_check(zone, &zone->contexts[ref.index]);
    ngx_kexec_zone_unlock(zone);
    be(2);
    notices();
    assert_int_equal(own[4].notices, 1);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);
    assert_int_equal(stat.queued, 0);
    assert_int_equal(stat.idle, 0);

    /* its late answer is one nevertheless */

    record(4)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);

    /* a free slot with a queue is a bug, and does not stay */

    assert_int_equal(enter(5, ref), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(6, ref), NGX_AGAIN);

    ngx_kexec_zone_lock(zone);
    ngx_kexec_slot_free(zone, record(4));
    ngx_kexec_slot_release(&zone->contexts[ref.index]);
    ngx_kexec_zone_unlock(zone);

    assert_int_equal(look(6), NGX_KEXEC_CLAIM_QUEUED);
    be(2);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_HELD);
    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.idle, 1);
}


/* a worker that begins to leave tells all that it has, once */

static void
test_leaving(void **state)
{
    ngx_kexec_ref_t      ref;
    ngx_kexec_context_t  ctx;

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);

    be(1);
    assert_int_equal(enter(2, ref), NGX_AGAIN);

    be(0);
    assert_int_equal(ngx_kexec_zone_leaving(), 0);

    ngx_exiting = 1;
    notices();
    notices();
    ngx_exiting = 0;

    assert_int_not_equal(ngx_kexec_zone_leaving(), 0);

    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[2].notices, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_notices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_abandon, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaving, setup, teardown),
    };

    stub_start();

    /* as the master does before it forks */

    if (ngx_kexec_wake_init(NGX_KEXEC_MAX_WORKERS, stub.cycle.log) != NGX_OK) {
        return 1;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
