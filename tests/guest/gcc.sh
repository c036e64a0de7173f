#!/bin/busybox sh
# Stands for gcc in the guest: the host compiles (see compiler.py). The request is one
# argument a line; the answer is the exit status, what gcc printed, and the output file,
# which belongs where the argument behind -o says.
name=$GUEST_SHARE/gcc/$(date +%s%N)-$$
out=a.out
previous=
{
    pwd
    for argument; do
        echo "$argument"
        [ "$previous" = -o ] && out=$argument
        previous=$argument
    done
} >"$name.new"
mv "$name.new" "$name.request"
until [ -e "$name.status" ]; do
    sleep 0.05
done
cat "$name.text" >&2
status=$(cat "$name.status")
if [ "$status" = 0 ]; then
    cp "$name.out" "$out" && chmod +x "$out"
fi
rm -f "$name".*
exit "$status"
