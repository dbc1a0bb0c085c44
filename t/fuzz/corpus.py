"""Writes corpus/: an input of each kind for the fuzzers to begin with."""

import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../unit'))

from answer import pack_binary, pack_v1  # noqa: E402

MESSAGES = {
    'stream': ('stream', {'name': 'stdout', 'text': 'h\xe9llo \u2603\n'}),
    'surrogates': ('stream', {'name': 'stderr', 'text': '\ud800 \U0001f389'}),
    'status': ('status', {'execution_state': 'idle'}),
    'input': ('execute_input', {'code': '1', 'execution_count': 2}),
    'error': ('error', {'ename': 'E', 'evalue': None,
                        'traceback': ['\x1b[31m', 'a\n', 7]}),
    'reply': ('execute_reply', {'status': 'error', 'ename': 'E'}),
    'result': ('execute_result', {'data': {'text/plain': "'it\\'s'",
                                           'a/b': [1, None, float('nan')]}}),
    'display': ('display_data', {'data': {
        'e2b/data': {'a': [1.5, -2e300]}, 'text/plain': '"x"',
        'image/png': 'cA==', 'text/html': 5}}),
}


def write(fuzzer, name, data):
    path = os.path.join(HERE, 'corpus', fuzzer)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), 'wb') as f:
        f.write(data)


for name, (kind, content) in MESSAGES.items():
    msg = {'header': {'msg_id': 'k', 'msg_type': kind,
                      'date': '2026-11-29T14:32:25.589513Z'},
           'parent_header': {'msg_id': 'p'}, 'metadata': {},
           'content': content, 'channel': 'iopub'}
    text = json.dumps(msg).encode()
    raw = [json.dumps(msg[part], separators=(',', ':'), ensure_ascii=False)
           .encode('utf-8', 'surrogatepass')
           for part in ('header', 'parent_header', 'metadata', 'content')]
    write('fuzz_message', f'{name}.text', b'\x00' + text)
    write('fuzz_message', f'{name}.v1', b'\x02' + pack_v1(b'iopub', *raw))
    write('fuzz_message', f'{name}.parts',
          b'\x07' + b'\x1e'.join([b'iopub', *raw]))

write('fuzz_message', 'stream.binary',
      b'\x01' + pack_binary(text, [b'\x00\xff']))

write('fuzz_websocket', 'text', b'\x00\x81\x05hello\x82\x00')
write('fuzz_websocket', 'fragments',
      b'\x01\x01\x02ab\x89\x01p\x00\x01c\x80\x00\x8a\x00\x88\x02\x03\xe8')
write('fuzz_websocket', 'lengths',
      b'\x02\x82\x7e' + struct.pack('!H', 126) + bytes(126) + b'\x82\x7f'
      + struct.pack('!Q', 127) + bytes(127) + b'\x89\x7d' + bytes(125))
for n, bad in enumerate([b'\x81\x80', b'\xc1\x00', b'\x09\x00', b'\x80\x00',
                         b'\x01\x00\x81\x00', b'\x89\x7e', b'\x83\x00',
                         b'\x82\x7f\xff' + bytes(7)]):
    write('fuzz_websocket', f'violation{n}', b'\x03\x81\x01a' + bad)

write('fuzz_http', 'length',
      b'\x00HTTP/1.1 200 OK\r\nServer: TornadoServer/6.2\r\n'
      b'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}')
write('fuzz_http', 'chunked',
      b'\x01HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
      b'3;a=b\r\nabc\r\n00A\r\n0123456789\r\n0\r\nT: v\r\n\r\nx')
write('fuzz_http', 'closed',
      b'\x02HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\n<html>')
write('fuzz_http', 'websocket',
      b'\x03HTTP/1.1 100 Continue\r\n\r\n'
      b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n'
      b'Connection: Upgrade\r\n'
      b'Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n'
      b'Sec-Websocket-Protocol: v1.kernel.websocket.jupyter.org\r\n\r\n\x81')
write('fuzz_http', 'both',
      b'\x04HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'
      b'Transfer-Encoding: chunked\r\n\r\n')

ID = '01234567-89ab-4cde-8f01-23456789abcd'
NAME = {'kexec': ID, 'language': 'python', 'cwd': '/home', 'serial': 7,
        'default': True, 'kind': 1, 'process': 2, 'envs': True}


def session(path=f'kexec-{ID}-3', name=NAME, **more):
    return {'id': 's', 'path': path, 'name': json.dumps(name), **more,
            'kernel': {'id': 'k', 'name': 'python3', 'connections': 1,
                       'execution_state': 'idle'}}


ANSWERS = {
    'session': session(),
    'sessions': [session(), session('a.ipynb', {}), {'id': 's'}],
    'other-uuid': [session(f'kexec-{"x" * 34}\r\n-3',
                           {**NAME, 'kexec': 'x' * 34 + '\r\n'})],
    'epoch': [session(f'kexec-{ID}-x'), session(f'kexec-{ID}-{1 << 32}'),
              session(f'kexec-{ID}-')],
    'serials': [session(name={**NAME, 'serial': n})
                for n in ((1 << 63) - 1, 1 << 62, (1 << 53) + 1, 1 << 53)],
    'numbers': [session(name={**NAME, 'serial': -1, 'process': 1 << 40}),
                session(name={**NAME, 'kind': 7}),
                session(name={**NAME, 'process': -1})],
    'kernel': session()['kernel'],
    'error': {'message': 'No such kernel \xe9\u2603', 'reason': None},
    'specs': {'default': 'python3', 'kernelspecs': {
        'python3': {'name': 'python3', 'spec': {'language': 'python'}},
        'js': {'spec': {'language': 'JavaScript'}}, 'bad': 1}},
}

for name, answer in ANSWERS.items():
    write('fuzz_jupyter', name, json.dumps(answer).encode())

write('fuzz_jupyter', 'page', b'<html>' + b'\xe2\x98\x83' * 100)
write('fuzz_jupyter', 'words', b'\xe2\x98\x83' * 100 + b' \n')

BODIES = {
    'execute': b'\x00{"code": "1", "context_id": "c", "language": null,'
               b'"env_vars": {"a": "b"}, "timeout": 1.5}',
    'create': b'\x01{"language": "python", "cwd": "/"}',
    'types': b'\x00{"code": 1, "env_vars": {"a": [{}], "b": null},'
             b'"timeout": -0, "language": [1e300]}',
    'members': b'\x00{"env_vars": 1, "timeout": "1", "x": "\\u0000"}',
    'text': b'\x02{"code": "1"}',
    'invalid': b'\x00{"code": "\xff',
    'python': b'\x00{"x": [NaN, -Infinity, 1e400, 123456789012345678901],'
              b'"\\u0000": "\\ud800", "code": "\xed\xa0\x80", "timeout": NaN}',
    'utf-8': b'\x01' + '{"cwd": "\xe9\U0001f389", "x": false}'.encode(),
    'mark': b'\x01\xef\xbb\xbf{}',
    'utf-16': b'\x01' + '{"cwd": "\xe9\U0001f389\ud800"}'
              .encode('utf-16', 'surrogatepass'),
    'utf-32': b'\x01' + '{"cwd": "\xe9\U0001f389"}'.encode('utf-32-be'),
    'list': b'\x01[1, "a"]',
    'null': b'\x01null',
    'empty': b'\x00',
}

# what the link's owner does, and frames of 4 bytes each: kind, length, filling

FRAMES = {
    'mixed': b'\x01\x83\xff\xff' b'\x00\x05ab' b'\x08\x05cd'
             b'\x58\xff\xff\xff' b'\x06\x20ab' b'\x40\xff\xff\xff'
             b'\x08\xff\xff\xff',
    'fragments': b'\x02\x01\xff\xff' + b'\x30\x10\x00a' * 9 + b'\x08\x00ab',
    'closed': b'\x03\x01\x00\x00' b'\x08\x05ab' b'\x0f\x14ab',
    'owner': b'\x04\x00\x02\x02' b'\x08\x05ab' b'\x18\x05ab'
             b'\x48\x20\x00\x00' b'\x08\x05ab',
    'large': b'\x05\x7f\xff\xff' b'\x40\x80\x00\x00' b'\x06\x05ab'
             b'\x48\x70\x00\x00' b'\x48\x1f\xff\xff',
}

for name, frames in FRAMES.items():
    write('fuzz_link', name, frames)

# limits, and steps of 3 bytes each: kind, and a number

STEPS = {
    'slow': b'\x00\x05\x00' b'\x00\x20\x00' b'\x04\xff\x7f' b'\x05\x00\x00'
            b'\x07\x10\x00' b'\x00\x20\x00' b'\x08\xff\x7f',
    'file': b'\x00\x27\x01' b'\x03\xff\xff' b'\x05\x00\x00' b'\x03\xff\xff'
            b'\x03\xff\xff' b'\x08\x00\x40' b'\x00\x20\x00' b'\x08\xff\xff'
            b'\x03\xff\xff',
    'disk': b'\x00\xe7\x03' b'\x03\xff\xff' b'\x09\x01\x00' b'\x84\xff\x3f'
            b'\x09\x00\x00' b'\x00\x20\x00' b'\x08\xff\xff' b'\x00\x20\x00',
    'limit': b'\x00\xe7\x00' b'\x0b\x01\x00' b'\x08\xff\xff' b'\x03\xff\xff'
             b'\x05\x00\x00' b'\x0f\x00\x00' b'\x00\x20\x00' b'\x0f\x00\x00',
    'none': b'\x10\x00\x00' b'\x03\xff\xff' b'\x03\xff\xff' b'\x80\x20\x00',
    'others': b'\x00\x07\x00' b'\x0a\xff\xff' b'\x03\xff\xff' b'\x03\xff\xff',
}

for name, steps in STEPS.items():
    write('fuzz_client', name, steps)

# language, how many more, and the variables

VARIABLES = {
    'plain': b'\x01\x00{"A": "1", "b_2": "x y"}',
    'refused': b'\x05\x00{"A": "1", "B=": "2", "": "3", "C": "\\u0000"}',
    'types': b'\x02\x00{"A": 1, "B": null, "C": ["c"], "D": ""}',
    'many': b'\x04\xff{"A": "1"}',
    'none': b'\x00\x00{}',
}

for name, variables in VARIABLES.items():
    write('fuzz_env', name, variables)

# location and method, and the path

PATHS = {
    'health': b'\x00health',
    'execute': b'\x04execute',
    'list': b'\x01contexts',
    'delete': b'\x0acontexts/abc',
    'restart': b'\x06/contexts/abc/restart',
    'interrupt': b'\x07/contexts/abc/interrupt',
    'redirect': b'\x14contexts/a b/restart/',
    'allow': b'\x0ccontexts',
}

for name, path in PATHS.items():
    write('fuzz_routes', name, path)

for name, body in BODIES.items():
    write('fuzz_schema', name, body)

for n, language in enumerate(('other', 'python', 'javascript', 'typescript',
                              'r', 'bash', 'java')):
    write('fuzz_language', language,
          bytes([n + 28]) + '\x1e'.join(
              ['A', 'it\'s "x"\n\\', 'b_1', '\u2028\U0001f600$(x)`y`',
               'PS1', '', 'with space', '%%', 'Z', 'a\x00b']).encode())
    write('fuzz_language', language + '-plain',
          bytes([n + 21]) + b'A\x1e/tmp\x1eB\x1e\xff\xed\xa0\x80')
