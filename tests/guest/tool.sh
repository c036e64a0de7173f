#!/bin/busybox sh
# Stands for a tool in the guest (its own name says which), while the host does the work
# (see tools.py). The request is a line each: the directory, the tool, its arguments. The
# answer is the exit status, what the tool printed, and for gcc the output file, which
# belongs where the argument behind -o says.
name=$GUEST_SHARE/tools/$(date +%s%N)-$$
out=a.out
previous=
{
    pwd
    basename "$0"
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
cat "$name.text"
status=$(cat "$name.status")
if [ -e "$name.out" ]; then
    cp "$name.out" "$out" && chmod +x "$out"
fi
rm -f "$name".*
exit "$status"
