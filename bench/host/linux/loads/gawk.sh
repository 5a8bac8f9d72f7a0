# The same sums in another language.
gawk '{ n[$2] += $3 } /9.*end$/ { m++ } END { for (w in n) print w, n[w] | "sort"; close("sort"); print m }' /tmp/text
