# Sums of all headers.
find /usr/include -type f -name '*.h' -print0 | xargs -0 -n 40 md5sum | sort | md5sum
