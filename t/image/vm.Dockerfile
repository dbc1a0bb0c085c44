# As docker/README.md says.

FROM ngx-kexec

RUN apt-get update && \
    apt-get install -y --no-install-recommends systemd-sysv && \
    systemctl enable jupyter
