
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_workers.h"


/* what Jupyter's sessions tell about contexts, and the limits of their number */


static void
found(ngx_kexec_context_t *ctx, const char *language, ngx_uint_t is_default,
    ngx_uint_t serial)
{
    new_context(ctx, language, is_default);

    ctx->serial = serial;
    ctx->epoch = 3;
    ctx->process = 77;
    ctx->prepared = 1;
    ctx->dirty = 1;
    ctx->owes_restore = 1;

    ctx->session.len = 2;
    memcpy(ctx->session.data, "s1", 2);
    ctx->kernel.len = 2;
    memcpy(ctx->kernel.data, "k1", 2);

    ctx->socklen = 16;
    memset(ctx->sockaddr, 1, 16);
    ctx->server_len = 4;
    memcpy(ctx->server, "a:88", 4);
}


static void
test_adopt(void **state)
{
    ngx_str_t             id, python;
    ngx_array_t          *list;
    ngx_kexec_claim_t     claim;
    ngx_kexec_context_t   ctx, got, again, *all;

    found(&ctx, "python", 1, 41);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);

    id.len = NGX_KEXEC_UUID_LEN;
    id.data = ctx.id;
    assert_int_equal(ngx_kexec_zone_find(zone, &id, &got), NGX_OK);

    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_READY);
    assert_int_equal(got.serial, 41);
    assert_int_equal(got.epoch, 3);
    assert_int_equal(got.process, 77);
    assert_int_equal(got.ready, 0);
    assert_int_equal(got.prepared, 1);
    assert_int_equal(got.dirty, 1);
    assert_int_equal(got.owes_restore, 1);
    assert_int_equal(got.socklen, 16);
    assert_memory_equal(got.sockaddr, ctx.sockaddr, 16);
    assert_int_equal(got.server_len, 4);
    assert_memory_equal(got.session.data, "s1", 2);
    assert_memory_equal(got.kernel.data, "k1", 2);

    python.len = 6;
    python.data = (u_char *) "python";
    assert_int_equal(ngx_kexec_zone_default(zone, &python, &got), NGX_OK);
    assert_memory_equal(got.id, ctx.id, NGX_KEXEC_UUID_LEN);

    /* known already */

    again = ctx;
    again.epoch = 9;
    assert_int_equal(ngx_kexec_zone_adopt(zone, &again), NGX_BUSY);
    assert_int_equal(again.epoch, 3);

    /* there is a default one */

    found(&again, "python", 1, 7);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &again), NGX_OK);
    assert_int_equal(again.is_default, 0);

    /* new ones come behind all that were found */

    memset(&claim, 0, sizeof(claim));
    new_context(&got, "r", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &got, &claim), NGX_OK);
    assert_int_equal(got.serial, 42);
    ngx_kexec_zone_created(&claim);
    ngx_kexec_claim_leave(&claim);

    list = ngx_kexec_zone_list(zone, NULL);
    all = list->elts;
    assert_int_equal(list->nelts, 3);
    assert_memory_equal(all[0].id, again.id, NGX_KEXEC_UUID_LEN);
    assert_memory_equal(all[1].id, ctx.id, NGX_KEXEC_UUID_LEN);
    assert_memory_equal(all[2].id, got.id, NGX_KEXEC_UUID_LEN);
    stub_free_array(list);
}


/* the largest serial that is found leaves room for those that follow */

static void
test_serials(void **state)
{
    ngx_kexec_context_t   ctx, next;

    found(&ctx, "python", 0, NGX_KEXEC_SERIAL_FOUND);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);

    (void) ready_context(&next);
    assert_int_equal(ngx_kexec_zone_get(zone, &next.ref, &next), NGX_OK);
    assert_int_equal(next.serial, NGX_KEXEC_SERIAL_FOUND + 1);

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
}


static void
test_adopt_failed(void **state)
{
    ngx_str_t             text;
    ngx_kexec_claim_t     claim;
    ngx_kexec_context_t   ctx, got;

    /* a default one that could not be made stands in nobody's way */

    memset(&claim, 0, sizeof(claim));
    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &claim), NGX_OK);

    text.len = 2;
    text.data = (u_char *) "no";
    ngx_kexec_zone_failed(&claim, 503, &text);

    found(&got, "python", 1, 1);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &got), NGX_OK);
    assert_int_equal(got.is_default, 1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &ctx), NGX_DECLINED);
}


static void
test_full(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_context_t   ctx;

    for (i = 0; i < zone->ncontexts; i++) {
        found(&ctx, "python", 0, i);
        assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);
    }

    found(&ctx, "python", 0, i);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_DECLINED);
}


static void
test_limit(void **state)
{
    ngx_str_t             text;
    ngx_kexec_claim_t     one, two;
    ngx_kexec_context_t   ctx, second;

    ngx_kexec_zone_limit(zone, 2);

    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));

    (void) ready_context(&ctx);

    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &one), NGX_OK);

    new_context(&second, "r", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &second, &two), NGX_ABORT);

    /* what could not be made does not count, and that one may be tried again */

    text.len = 2;
    text.data = (u_char *) "no";
    ngx_kexec_zone_failed(&one, 503, &text);

    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &one), NGX_OK);
    ngx_kexec_zone_remove(&one);

    assert_int_equal(ngx_kexec_zone_create(zone, &second, &two), NGX_OK);
    ngx_kexec_zone_remove(&two);

    ngx_kexec_zone_limit(zone, 0);
}


static void
test_lost(void **state)
{
    ngx_kexec_claim_t     claim;
    ngx_kexec_context_t   ctx, moved;

    memset(&claim, 0, sizeof(claim));

    found(&ctx, "python", 0, 1);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);

    /* it has another session by now */

    moved = ctx;
    moved.session.data[0] = 'x';
    ngx_kexec_zone_lost(zone, &moved);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &moved), NGX_OK);

    /* somebody works there */

    claim.context = ctx.ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &claim, 4), NGX_OK);
    ngx_kexec_zone_lost(zone, &ctx);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &moved), NGX_OK);

    assert_int_equal(moved.kernel.len, ctx.kernel.len);

    /* its kernel is gone, it is not */

    ngx_kexec_claim_leave(&claim);
    ngx_kexec_zone_lost(zone, &ctx);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &moved), NGX_OK);
    assert_int_equal(moved.kernel.len, 0);
    assert_int_equal(moved.prepared, 0);
    assert_int_equal(moved.epoch, ctx.epoch + 1);
}


static void
test_lapse(void **state)
{
    ngx_kexec_claim_t     claim;
    ngx_kexec_context_t   ctx;

    memset(&claim, 0, sizeof(claim));

    /* one with a kernel never does */

    found(&ctx, "python", 0, 1);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);
    assert_int_equal(ngx_kexec_zone_lapse(zone, &ctx.ref, 0), NGX_DECLINED);

    /* one without does when it was not used for long enough */

    ngx_kexec_zone_lost(zone, &ctx);
    assert_int_equal(ngx_kexec_zone_lapse(zone, &ctx.ref, 3600000),
                     NGX_DECLINED);

    /* and is not used now */

    claim.context = ctx.ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &claim, 4), NGX_OK);
    assert_int_equal(ngx_kexec_zone_lapse(zone, &ctx.ref, 0), NGX_DECLINED);

    ngx_kexec_claim_leave(&claim);
    assert_int_equal(ngx_kexec_zone_lapse(zone, &ctx.ref, 0), NGX_OK);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &ctx), NGX_DECLINED);
    assert_int_equal(ngx_kexec_zone_lapse(zone, &ctx.ref, 0), NGX_DECLINED);

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
}


/* where no context more can be made, the one that was unused for longest goes */

static void
test_make_room(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_claim_t     claim;
    ngx_kexec_context_t   ctx, old, lost[3];

    memset(&claim, 0, sizeof(claim));

    for (i = 0; i < 3; i++) {
        found(&lost[i], "python", 0, i);
        assert_int_equal(ngx_kexec_zone_adopt(zone, &lost[i]), NGX_OK);
        ngx_kexec_zone_lost(zone, &lost[i]);
    }

    zone->contexts[lost[0].ref.index].c.used -= 1000;
    zone->contexts[lost[1].ref.index].c.used -= 3000;
    zone->contexts[lost[2].ref.index].c.used -= 2000;

    /* there is room */

    assert_int_equal(ngx_kexec_zone_make_room(zone, &old), NGX_DECLINED);

    ngx_kexec_zone_limit(zone, 3);

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &claim), NGX_ABORT);

    assert_int_equal(ngx_kexec_zone_make_room(zone, &old), NGX_OK);
    assert_memory_equal(old.id, lost[1].id, NGX_KEXEC_UUID_LEN);
    assert_int_equal(ngx_kexec_zone_make_room(zone, &old), NGX_DECLINED);

    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &claim), NGX_OK);
    ngx_kexec_zone_remove(&claim);
    ngx_kexec_zone_limit(zone, 0);

    /* the zone itself is full */

    for (i = 3; zone->sh->free_contexts != NGX_KEXEC_NONE; i++) {
        found(&ctx, "python", 0, i);
        assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);
    }

    claim.context = lost[2].ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &claim, 4), NGX_OK);

    assert_int_equal(ngx_kexec_zone_make_room(zone, &old), NGX_OK);
    assert_memory_equal(old.id, lost[0].id, NGX_KEXEC_UUID_LEN);

    found(&ctx, "python", 0, i);
    assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);

    /* only one is left without a kernel, and somebody uses it */

    assert_int_equal(ngx_kexec_zone_make_room(zone, &old), NGX_DECLINED);

    ngx_kexec_claim_leave(&claim);
    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
}


static void
test_expire(void **state)
{
    ngx_uint_t            hand;
    ngx_kexec_claim_t     claim, user;
    ngx_kexec_context_t   ctx, idle[4];

    memset(&claim, 0, sizeof(claim));
    memset(&user, 0, sizeof(user));
    hand = 0;

    (void) ready_context(&ctx);

    assert_int_equal(ngx_kexec_zone_idle(zone, 60000, &hand, idle, 4), 0);
    assert_int_equal(ngx_kexec_zone_idle(zone, 0, &hand, idle, 4), 1);
    assert_memory_equal(idle[0].id, ctx.id, NGX_KEXEC_UUID_LEN);

    /* used again, a moment before it is to go */

    user.context = ctx.ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &user, 4), NGX_OK);
    assert_int_equal(ngx_kexec_zone_idle(zone, 0, &hand, idle, 4), 0);

    claim.context = ctx.ref;
    assert_int_equal(ngx_kexec_claim_expire(zone, &claim, 0), NGX_DECLINED);

    ngx_kexec_claim_leave(&user);
    assert_int_equal(ngx_kexec_claim_expire(zone, &claim, 60000),
                     NGX_DECLINED);
    assert_int_equal(ngx_kexec_claim_expire(zone, &claim, 0), NGX_OK);

    /* it is being deleted now */

    user.context = ctx.ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &user, 4), NGX_DECLINED);

    ngx_kexec_zone_remove(&claim);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &ctx), NGX_DECLINED);
}


/* however many there are, each has its turn, and none twice in a call */

static void
test_idle_in_turn(void **state)
{
    ngx_uint_t            i, n, calls, hand, seen[10];
    ngx_kexec_context_t   ctx, idle[4];

    memset(seen, 0, sizeof(seen));

    for (i = 0; i < 10; i++) {
        found(&ctx, "python", 0, i);
        assert_int_equal(ngx_kexec_zone_adopt(zone, &ctx), NGX_OK);
    }

    hand = 0;

    for (calls = 0; calls < 5; calls++) {
        n = ngx_kexec_zone_idle(zone, 0, &hand, idle, 4);
        assert_int_equal(n, 4);

        while (n--) {
            seen[idle[n].serial]++;
        }
    }

    for (i = 0; i < 10; i++) {
        assert_int_equal(seen[i], 2);
    }

    /* behind all of them, as after many were deleted */

    hand = 1000;
    assert_int_equal(ngx_kexec_zone_idle(zone, 0, &hand, idle, 4), 4);
    assert_int_equal(idle[0].serial, 0);
}


static void
test_turns(void **state)
{
    u_char     buf[NGX_KEXEC_FAILURE_LEN];
    ngx_pid_t  pid;
    ngx_str_t  why;

    pid = ngx_pid;

    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 1000), 1);
    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 1000), 0);
    assert_int_equal(ngx_kexec_zone_turn(zone, 1, 1000), 1);
    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 0), 1);

    /* another worker has to wait longer */

    zone->sh->turns[0].time -= 1500;
    ngx_pid++;
    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 1000), 0);

    zone->sh->turns[0].time -= 1000;
    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 1000), 1);

    ngx_pid = pid;
    zone->sh->turns[0].time -= 1500;
    assert_int_equal(ngx_kexec_zone_turn(zone, 0, 1000), 0);

    assert_int_equal(ngx_kexec_zone_seen(zone), NGX_KEXEC_SEEN_NONE);
    why.len = 3;
    why.data = (u_char *) "why";
    ngx_kexec_zone_set_seen(zone, NGX_KEXEC_SEEN_SOME, &why);
    ngx_kexec_zone_set_seen(zone, NGX_KEXEC_SEEN_TRIED, &why);
    assert_int_equal(ngx_kexec_zone_why_unseen(zone, buf) - buf, 3);
    assert_memory_equal(buf, "why", 3);
    assert_int_equal(ngx_kexec_zone_seen(zone), NGX_KEXEC_SEEN_SOME);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_adopt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adopt_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_serials, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lapse, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_make_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
    };

    stub_start();

    return cmocka_run_group_tests(tests, NULL, NULL);
}
