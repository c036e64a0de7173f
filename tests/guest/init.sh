#!/bin/busybox sh
# The guest's first process: mounts what the host shares, runs the command, powers off.
# The kernel's command line passes `checkout` and `share`, the paths of two folders that
# are mounted where the host has them, so that paths mean the same on both sides.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/pts /dev/shm
/bin/busybox mount -t devpts pts /dev/pts
/bin/busybox mount -t tmpfs shm /dev/shm
/bin/busybox ip link set lo up
/sbin/ldconfig # no package was configured; ctypes looks libraries up with it
ln -sf /proc/self/fd /dev/fd
for module in $(cat /modules); do
    /bin/busybox insmod "$module"
done
for word in $(cat /proc/cmdline); do
    case $word in checkout=* | share=*) eval "${word%%=*}='${word#*=}'" ;; esac
done
/bin/busybox mkdir -p "$checkout" "$share" /usr/local/lib/python3.11/dist-packages
options=trans=virtio,version=9p2000.L,msize=262144
/bin/busybox mount -t 9p -o "ro,cache=loose,$options" checkout "$checkout"
/bin/busybox mount -t 9p -o "ro,cache=loose,$options" packages /usr/local/lib/python3.11/dist-packages
/bin/busybox mount -t 9p -o "cache=none,$options" share "$share"
export LIVEPRO_TESTS_SLOW=1 LIVEPRO_TESTS_TIMEOUT=300 LIVEPRO_TESTS_PERIOD=200000 LIVEPRO_TESTS_NUMBERED=2
export TERM=dumb NO_COLOR=1 GUEST_SHARE=$share PYTEST_DEBUG_TEMPROOT=$share/tmp PYTHONPATH="$checkout:$checkout/tests"
cd "$checkout" || exit
python3 -m guest.kernels "$share/kernels"
/bin/bash "$share/command" </dev/null
echo $? >"$share/status"
/bin/busybox sync
/bin/busybox poweroff -f
