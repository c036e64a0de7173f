# What git's users do in a day, from nothing to a bisected, repacked, cloned repository. Whatever it prints is
# the same each time: names, dates and the default branch are fixed, and hashes with them.
set -eu
export HOME="$PWD/home" GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat GIT_EDITOR=true LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='2026-01-02 03:04:05 +0000' GIT_COMMITTER_DATE='2026-01-02 03:04:05 +0000'
mkdir home
git config --global init.defaultBranch trunk
git config --global advice.detachedHead false
git config --global protocol.file.allow always
git config --global gc.autoDetach false

echo "# history"
git init -q one
cd one
for n in 1 2 3 4 5 6; do
    seq $n 400 > numbers
    echo "line $n" >> text
    git add .
    git commit -q -m "commit $n"
done
git tag -a -m "a tag" v1
git log --format='%H %s' --stat
git rev-list --count --all
git blame -s text
git show v1:numbers | tail -1
git describe --long

echo "# branches, merges, conflicts"
git checkout -q -b side HEAD~3
echo "of the side" > side
git add side
git commit -q -m side
git merge -q --no-edit trunk
git checkout -q -b other HEAD^
echo "line other" >> text
git commit -q -a -m other
git merge --no-edit trunk && exit 1
git status --short
git ls-files --unmerged
printf 'line 1\nresolved\n' > text
git add text
git commit -q -m resolved
git log --graph --oneline --all

echo "# rewriting"
git checkout -q trunk
git rebase -q side
git cherry-pick -x other~1 && exit 1
git cherry-pick --skip
git stash list
echo changed >> text
git stash -q
git stash apply -q
git diff | git patch-id --stable
git commit -q -a -m stashed
seq 500 > numbers
git commit -q -a -m counted
git format-patch -2 --stdout > ../patches
git reset -q --hard HEAD~2
git am -q ../patches
git log -1 --format=%T
git revert --no-edit HEAD | sed 1q
git reflog | cut -d' ' -f2-

echo "# searching"
git grep -c 39 -- numbers
git grep --threads=4 -n line v1
git log -S'line 3' --oneline
git bisect start HEAD v1~5
git bisect run sh -c '! grep -q "line 4" text'
git bisect reset

echo "# objects"
git gc -q --aggressive --prune=now
git count-objects -v | grep -E 'count|in-pack|packs'
git fsck --full --strict
git verify-pack .git/objects/pack/*.idx
git cat-file --batch-all-objects --batch-check | sha1sum
git archive --format=tar HEAD | sha1sum
git bundle create -q ../bundle --all
git bundle verify -q ../bundle

echo "# other repositories"
cd ..
git clone -q one two
git clone -q --bare bundle three.git
git clone -q --depth 1 "file://$PWD/one" four
git -C two remote add bare ../three.git
printf '#!/bin/sh\necho "hook: $(wc -l)"\n' > three.git/hooks/pre-receive
chmod +x three.git/hooks/pre-receive
cd two
echo two >> text
git commit -q -a -m two
git push -q bare HEAD:refs/heads/new 2>&1 | sed 's/ *$//'
git fetch -q --all --prune
git submodule --quiet add ../one module
git commit -q -m module
git submodule foreach --quiet 'echo "$name $(git rev-parse HEAD)"'
git worktree add -q ../tree HEAD~1
git worktree list | wc -l
printf '*.txt filter=upper\n' > .gitattributes
git config filter.upper.clean 'tr a-z A-Z'
git config filter.upper.smudge 'tr A-Z a-z'
echo "some words" > words.txt
git add -A
git commit -q -m filtered
git show HEAD:words.txt
rm words.txt
git checkout -q words.txt
cat words.txt
git notes add -m note
git sparse-checkout set --no-cone /text
ls
git -C ../four log --oneline
git fast-export --all | sha1sum
git for-each-ref
