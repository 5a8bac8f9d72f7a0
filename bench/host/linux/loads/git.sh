# A repository with two commits.
rm -rf /tmp/repository
cp -r /tmp/tree /tmp/repository && cd /tmp/repository || exit 1
git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -q -m one || exit 1
for ((i = 0; i < 20; i++)); do echo more >> "3/$i"; done
git -c user.name=a -c user.email=a@b commit -q -a -m two && git diff --stat HEAD^ && git status --short && git log --oneline
