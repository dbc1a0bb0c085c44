"""Every event that the reference server answered, made again from a kernel's
message.

golden_events.py ANSWER [FILE.jsonl ...]"""

import glob
import json
import os
import sys

from answer import Answer, TEXT, V1, pack_v1

MIMES = {'text': 'text/plain', 'html': 'text/html',
         'markdown': 'text/markdown', 'svg': 'image/svg+xml',
         'png': 'image/png', 'jpeg': 'image/jpeg', 'pdf': 'application/pdf',
         'latex': 'text/latex', 'json': 'application/json',
         'javascript': 'application/javascript', 'data': 'e2b/data',
         'chart': 'e2b/chart'}


def messages(event):
    """The kernel's messages that stand for the event."""
    kind = event['type']
    date = '2026-11-29T14:32:25.589513Z'
    if kind == 'number_of_executions':
        yield date, 'execute_input', {
            'code': 'x', 'execution_count': event['execution_count']}
    elif kind in ('stdout', 'stderr'):
        date = event['timestamp'].replace('+00:00', 'Z')
        yield date, 'stream', {'name': kind, 'text': event['text']}
        yield event['timestamp'], 'stream', {'text': event['text'],
                                             'name': kind}
    elif kind == 'error':
        content = {'ename': event['name'], 'evalue': event['value'],
                   'traceback': event['traceback'].splitlines(True)}
        yield date, 'error', content
        yield date, 'execute_reply', {'status': 'error', **content}
    elif kind == 'result':
        main = event['is_main_result']
        bundle = dict(event['extra'])
        for name in reversed(MIMES):
            if name in event:
                bundle[MIMES[name]] = event[name]
        kind = 'execute_result' if main else 'display_data'
        text = bundle.get('text/plain')
        if text is None or text[:1] not in ('"', "'"):
            yield date, kind, {'data': bundle, 'metadata': {}}
        if text is not None:
            for quote in '\'"':
                yield date, kind, {
                    'data': {**bundle, 'text/plain': quote + text + quote}}


def layouts(date, kind, content):
    header = {'msg_id': 'k', 'msg_type': kind, 'date': date}
    parent = {'msg_id': 'p'}
    yield TEXT, json.dumps({
        'header': header, 'msg_id': 'k', 'msg_type': kind,
        'parent_header': parent, 'metadata': {}, 'content': content,
        'buffers': [], 'channel': 'iopub'}).encode()
    yield V1, pack_v1(b'iopub', *(
        json.dumps(part, separators=(',', ':'), ensure_ascii=False).encode()
        for part in (header, parent, {}, content)))


answer = Answer(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
files = sys.argv[2:] or glob.glob(os.path.join(here, '../golden/*.jsonl'))
seen, asked = {}, 0

if not files:
    raise SystemExit('golden_events: no t/golden/*.jsonl')

for path in files:
    for row in map(json.loads, open(path)):
        for line in row['answer'].get('body', '').splitlines(True):
            if line.startswith('{"type": ') and '/execute' in \
                    row['request'].get('path', '/execute'):
                seen.setdefault(line, row['name'])

for line, name in seen.items():
    for date, kind, content in messages(json.loads(line)):
        for layout, raw in layouts(date, kind, content):
            got = answer.event(layout, raw)
            if got != line.encode():
                raise SystemExit(f'{name}: of {raw!r}\ngot      {got!r}\n'
                                 f'expected {line!r}')
            asked += 1

answer.close()
print(f'golden_events: {len(seen)} events of {len(files)} files, '
      f'{asked} messages ok')
