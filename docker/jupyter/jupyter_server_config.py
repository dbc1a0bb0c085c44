# What ngx_kexec_module needs of a Jupyter Server, 1.23 and 2.x.
#
# The token comes from JUPYTER_TOKEN_FILE or JUPYTER_TOKEN, the port and the
# root directory from the command line.

import os

from jupyter_server import version_info

c = get_config()  # noqa: F821

# Only nginx talks to it.

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.quit_button = False

# The token would be seen in the command line, and in the environment of every
# kernel as well.

token_file = os.environ.pop("JUPYTER_TOKEN_FILE", "")
token = os.environ.pop("JUPYTER_TOKEN", "")

if token_file:
    with open(token_file) as file:
        token = file.read().strip()

if not token:
    raise SystemExit("neither JUPYTER_TOKEN_FILE nor JUPYTER_TOKEN has a token")

if version_info[0] >= 2:
    c.IdentityProvider.token = token
else:
    c.ServerApp.token = token

# Output is never thrown away for being fast: 2.x moved the limits to the
# connection.

if version_info[0] >= 2:
    c.ZMQChannelsWebsocketConnection.limit_rate = False
else:
    c.ServerApp.limit_rate = False

# Messages up to a request's own limit, which is nginx's to set.

c.ServerApp.max_body_size = 512 * 1024 * 1024
c.ServerApp.tornado_settings = {
    "websocket_max_message_size": 128 * 1024 * 1024,
}

# Kernels live as long as their context: none is culled, a dead one is always
# started again, and output is kept while no connection is open.

c.MappingKernelManager.cull_idle_timeout = 0
c.MappingKernelManager.buffer_offline_messages = True
c.KernelRestarter.restart_limit = 1000000

# Of no use behind nginx.

c.ServerApp.terminals_enabled = False
