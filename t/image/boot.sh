# Boots systemd on the file system $1, in the control group $2 and in namespaces
# that the caller made.  The mounts are what systemd expects in a container.

set -e

root=$1

mount --make-rprivate /
ip link set lo up

mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"

for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done

mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

# A control group of its own, which in there is the root of all.

mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
group=$root/sys/fs/cgroup/$2
mkdir "$group"
echo 0 > "$group/cgroup.procs"

exec unshare --cgroup bash -c '
    umount "$1/sys/fs/cgroup"
    mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
    exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        chroot "$1" /lib/systemd/systemd
' bash "$root"
