"""The JSON and message code against Python's: random values, random damage.

against_python.py ANSWER [SEED] [ROUNDS]"""

import json
import math
import random
import struct
import sys

from answer import BINARY, TEXT, V1, Answer, pack_binary, pack_v1, unpack_v1

answer = Answer(sys.argv[1])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
rnd = random.Random(seed)

if hasattr(sys, 'set_int_max_str_digits'):
    sys.set_int_max_str_digits(0)

ALPHABET = ['a', 'Z', '0', ' ', '"', '\\', '/', "'", '\n', '\r', '\t', '\b',
            '\f', '\0', '\x1b', '\x1f', '\x7f', '\x80', '\xe9', '\u0416',
            '\u2028', '\u2603', '\u6f22', '\ud7ff', '\ue000', '\uffff',
            '\U00010000', '\U0001f389', '\U0010ffff']
LONE = ['\ud800', '\udbff', '\udc00', '\udfff']


def random_string(alphabet=ALPHABET):
    kind = rnd.random()
    if kind < 0.1:
        return ''
    if kind < 0.3:
        return rnd.choice(alphabet) * rnd.randrange(1, 40)
    if kind < 0.5:
        plain = [rnd.choice('abc xyz') for _ in range(rnd.randrange(1, 300))]
        plain.insert(rnd.randrange(len(plain)), rnd.choice(alphabet))
        return ''.join(plain)
    return ''.join(rnd.choice(alphabet) for _ in range(rnd.randrange(40)))


def random_value(depth=0):
    kind = rnd.randrange(10 if depth < 5 else 7)
    if kind == 0:
        return rnd.choice([None, True, False])
    if kind == 1:
        return rnd.choice([0, -1, 7, 10 ** 30, -2 ** 63,
                           10 ** rnd.randrange(200)])
    if kind == 2:
        return rnd.choice([0.5, -1e300, 1e-7, -0.0, rnd.random(),
                           math.nan, math.inf, -math.inf])
    if kind < 7:
        return random_string(ALPHABET + LONE)
    if kind == 7:
        return [random_value(depth + 1) for _ in range(rnd.randrange(6))]
    return {random_string(): random_value(depth + 1)
            for _ in range(rnd.randrange(6))}


def finite(value):
    """As the module writes it: what is no JSON number is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [finite(v) for v in value]
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return value


def spread(text):
    """White space wherever the grammar has it."""
    out, inside, i = [], False, 0
    while i < len(text):
        c = text[i]
        if inside:
            if c == '\\':
                out.append(text[i:i + 2])
                i += 2
                continue
            inside = c != '"'
            out.append(c)
        else:
            inside = c == '"'
            pad = rnd.choice(['', '', ' ', '\n', '\t\r\n  '])
            out.append(pad + c + pad if c in '{}[]:,' else c)
        i += 1
    return rnd.choice(['', ' ', '\n']) + ''.join(out) + rnd.choice(['', '\n'])


def check(got, expected, of):
    if got != expected:
        raise SystemExit(f'seed {seed}\nof       {of!r}\n'
                         f'got      {got!r}\nexpected {expected!r}')


def values():
    for _ in range(rounds):
        value = random_value()
        expected = json.dumps(finite(value)).encode()

        for text in (json.dumps(value),
                     json.dumps(value, separators=(',', ':')),
                     json.dumps(value, indent=1),
                     spread(json.dumps(value))):
            check(answer.value(text.encode()), expected, text)

        # the same as UTF-8, which holds no surrogates
        text = json.dumps(value, ensure_ascii=False)
        raw = text.encode('utf-8', 'surrogatepass')
        replaced = json.loads(raw.decode('utf-8', 'replace'))
        check(answer.value(raw), json.dumps(finite(replaced)).encode(), raw)


def damage():
    """Both take the same texts, and understand the same by them."""
    taken = 0
    for _ in range(rounds * 4):
        raw = bytearray(json.dumps(random_value(3)).encode())
        for _ in range(rnd.randrange(1, 4)):
            at = rnd.randrange(len(raw) + 1)
            kind = rnd.randrange(4)
            if kind == 0 and raw:
                del raw[at:at + rnd.randrange(1, 4)]
            elif kind == 1:
                raw[at:at] = rnd.choice(
                    [b',', b':', b'"', b'{', b'}', b'[', b']', b'\\', b'0',
                     b'-', b'.', b'e', b'E+1', b'NaN', b'-Infinity', b'null',
                     b'\n', b'\x00', b'\x0b', b'\xff', b'\xe2\x82', b'tru',
                     b'\\u12', b'\\ud83d', b'\\x', b'1', b' '])
            elif kind == 2 and at < len(raw):
                raw[at] = rnd.randrange(256)
            else:
                raw = raw[:at]
        raw = bytes(raw)

        try:
            json.loads(raw.decode('utf-8', 'replace'))
        except ValueError:
            check(answer.value(raw), None, raw)
            continue

        got = answer.value(raw)
        if got is None:
            raise SystemExit(f'seed {seed}\nrefused {raw!r}')
        taken += 1
        got.decode('ascii')
        # numbers pass as they are written: 1e400 is not Python's Infinity
        # before it is read again
        check(repr(json.loads(got)), repr(nullified(raw)), raw)
    assert taken > rounds / 4, taken


def nullified(raw):
    return json.loads(raw.decode('utf-8', 'replace'),
                      parse_constant=lambda word: None)


def texts():
    for _ in range(rounds):
        text = random_string()
        check(answer.text(text.encode()),
              json.dumps(text)[1:-1].encode(), text)

        raw = bytes(rnd.choice([rnd.randrange(256), 0xe2, 0x82, 0xed, 0xa0,
                                0xf0, 0x9f, 0xf4, 0x90, 0xc0, 0x61])
                    for _ in range(rnd.randrange(30)))
        check(answer.text(raw),
              json.dumps(raw.decode('utf-8', 'replace'))[1:-1].encode(), raw)


def nesting():
    for depth, good in ((512, True), (513, False), (100000, False)):
        for left, right in ((b'[', b']'), (b'{"a": ', b'}')):
            text = left * depth + b'1' + right * depth
            check(answer.value(text), text if good else None, depth)
            text = left * depth
            check(answer.value(text), None, depth)


def message(msg_type, content, parent=None, **header):
    return {'header': {'msg_id': 'k1', 'msg_type': msg_type,
                       'date': '2026-11-29T14:32:25.589513Z', **header},
            'parent_header': {} if parent is None else {'msg_id': parent},
            'metadata': {}, 'content': content, 'channel': 'iopub',
            'msg_type': msg_type, 'buffers': []}


def layouts(msg, dumps=json.dumps):
    text = dumps(msg).encode()
    yield TEXT, text
    yield BINARY, pack_binary(text)
    yield BINARY, pack_binary(text, [b'', b'\x00\xff'])
    yield V1, pack_v1(msg['channel'].encode(),
                      *(dumps(msg[part]).encode() for part in
                        ('header', 'parent_header', 'metadata', 'content')))
    yield V1, pack_v1(msg['channel'].encode(),
                      *(dumps(msg[part]).encode() for part in
                        ('header', 'parent_header', 'metadata', 'content')),
                      b'', b'\x00\xff')


NAMES = {'text/plain': 'text', 'text/html': 'html',
         'text/markdown': 'markdown', 'image/svg+xml': 'svg',
         'image/png': 'png', 'image/jpeg': 'jpeg', 'application/pdf': 'pdf',
         'text/latex': 'latex', 'application/json': 'json',
         'application/javascript': 'javascript', 'e2b/data': 'data',
         'e2b/chart': 'chart'}


def result(bundle, main):
    """What the reference makes of a bundle (its models/result.py)."""
    bundle = dict(bundle)
    event = {'type': 'result'}
    for mime, name in NAMES.items():
        value = bundle.pop(mime, None)
        if value is None:
            continue
        if name == 'text' and isinstance(value, str) and value and \
                value[0] == value[-1] and value[0] in '\'"':
            value = value[1:-1]
        event[name] = value
    event['extra'] = bundle
    event['is_main_result'] = main
    return event


def events():
    for _ in range(rounds):
        kind = rnd.randrange(4)
        if kind < 2:
            bundle = {rnd.choice([*NAMES, 'text/x-other', 'a/b', '']):
                      random_value(4) for _ in range(rnd.randrange(8))}
            if rnd.random() < 0.7:
                bundle['text/plain'] = rnd.choice(['', "'", '"', "'\\"]) \
                    + random_string(["'", '"', '\\', 'a', '\u2603', 'u0027']) \
                    + rnd.choice(['', "'", '"', "'\\"])
            msg = message('execute_result' if kind else 'display_data',
                          {'data': bundle, 'metadata': {}}, 'p')
            expected = finite(result(bundle, bool(kind)))
        elif kind == 2:
            name, text = rnd.choice(['stdout', 'stderr']), random_string()
            msg = message('stream', {'name': name, 'text': text}, 'p')
            expected = {'type': name, 'text': text,
                        'timestamp': '2026-11-29T14:32:25.589513+00:00'}
        else:
            name, value = random_string(), random_string()
            trace = [random_string() for _ in range(rnd.randrange(4))]
            msg = message(rnd.choice(['error', 'execute_reply']),
                          {'status': 'error', 'ename': name, 'evalue': value,
                           'traceback': trace, 'more': random_value(4)}, 'p')
            expected = {'type': 'error', 'name': name, 'value': value,
                        'traceback': ''.join(trace)}

        expected = json.dumps(expected).encode() + b'\n'
        for layout, raw in layouts(msg):
            check(answer.event(layout, raw), expected, raw)

        # compact, every character as \uXXXX, keys and values alike
        raw = escape_all(json.dumps(msg, separators=(',', ':')))
        got = answer.event(TEXT, raw)
        check(json.loads(got), json.loads(expected), raw)


def escape_all(text):
    out, inside, i = [], False, 0
    while i < len(text):
        c = text[i]
        if inside and c == '\\':
            if text[i + 1] == 'u':
                out.append(text[i:i + 6])
                i += 6
            else:
                one = json.loads(f'"{text[i:i + 2]}"')
                out.append(f'\\u{ord(one):04x}')
                i += 2
            continue
        if c == '"':
            inside = not inside
            out.append(c)
        else:
            # but not a date's Z, which is looked for as it is
            out.append(f'\\u{ord(c):04X}' if inside and c != 'Z' else c)
        i += 1
    return ''.join(out).encode()


def cut_messages():
    """A damaged message is declined or understood; never more than that."""
    msg = message('stream', {'name': 'stdout', 'text': 'hello'}, 'p')
    for layout, raw in layouts(msg):
        for cut in range(len(raw)):
            got = answer.event(layout, raw[:cut])
            if layout == TEXT:
                check(got, None, raw[:cut])
        for _ in range(rounds // 4):
            bad = bytearray(raw)
            for _ in range(rnd.randrange(1, 5)):
                bad[rnd.randrange(min(len(bad), 80))] = rnd.randrange(256)
            answer.event(layout, bytes(bad))
    for n in (0, 5, 6, 7, 2 ** 31, 2 ** 61, 2 ** 63, 2 ** 64 - 1):
        check(answer.event(V1, struct.pack('<Q', n) + bytes(64)), None, n)
    for n in (0, 1, 2, 2 ** 30, 2 ** 32 - 1):
        check(answer.event(BINARY, struct.pack('!I', n) + bytes(64)), None, n)


def requests():
    for _ in range(rounds // 10):
        code, silent = random_string(), rnd.random() < 0.5
        for info in (False, True):
            header = {'msg_id': '0123-id', 'username': 'kexec',
                      'session': 'my-session',
                      'msg_type': 'kernel_info_request' if info
                      else 'execute_request',
                      'version': '5.3', 'date': '2026-11-29T14:32:25.589513Z'}
            content = {} if info else {
                'code': code, 'silent': silent, 'store_history': not silent,
                'user_expressions': {}, 'allow_stdin': False,
                'stop_on_error': False}

            raw = answer.request(TEXT, code.encode(), info, silent)
            check(raw.decode('ascii'),
                  json.dumps({'channel': 'shell', 'header': header,
                              'parent_header': {}, 'metadata': {},
                              'content': content, 'buffers': []}), code)

            raw = answer.request(V1, code.encode(), info, silent)
            check(unpack_v1(raw),
                  [b'shell', *(json.dumps(part).encode() for part in
                               (header, {}, {}, content))], code)


for test in (values, damage, texts, nesting, events, cut_messages, requests):
    test()
    print(f'against_python: {test.__name__} ok', flush=True)

answer.close()
