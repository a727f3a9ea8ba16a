; run 1 groups of 1
; with 3 4
; gives 3 4 7 1 100 3
; Nested loops over i and j < 4 that count; one leaves both loops at i * j = 3 -> 100, a continue of the
; outer loop skips j at j > i.
define void @search(ptr %out) section ".nvvm.kernel" {
start:
  %wanted = load i32, ptr %out, align 4
  %place.n = getelementptr inbounds i32, ptr %out, i64 1
  %n = load i32, ptr %place.n, align 4
  br label %outer
outer:
  %i = phi i32 [ 0, %start ], [ %i.next, %outer.next ], [ %i.next.2, %skip ]
  %seen = phi i32 [ 0, %start ], [ %seen.inner, %outer.next ], [ %seen.inner, %skip ]
  %skips = phi i32 [ 0, %start ], [ %skips, %outer.next ], [ %skips.next, %skip ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j.next, %inner.next ]
  %seen.inner = phi i32 [ %seen, %outer ], [ %seen.next, %inner.next ]
  %past = icmp ugt i32 %j, %i
  br i1 %past, label %skip, label %try
skip:
  %skips.next = add i32 %skips, 1
  %i.next.2 = add i32 %i, 1
  %again = icmp ult i32 %i.next.2, %n
  br i1 %again, label %outer, label %none
try:
  %product = mul i32 %i, %j
  %found = icmp eq i32 %product, %wanted
  br i1 %found, label %hit, label %inner.next
inner.next:
  %seen.next = add i32 %seen.inner, 1
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, %n
  br i1 %more, label %inner, label %outer.next
outer.next:
  %i.next = add i32 %i, 1
  %more.outer = icmp ult i32 %i.next, %n
  br i1 %more.outer, label %outer, label %none
hit:
  br label %end
none:
  br label %end
end:
  %result = phi i32 [ 100, %hit ], [ 200, %none ]
  %i.end = phi i32 [ %seen.inner, %hit ], [ 0, %none ]
  %j.end = phi i32 [ %j, %hit ], [ 0, %none ]
  %skips.end = phi i32 [ %skips, %hit ], [ 0, %none ]
  %p2 = getelementptr inbounds i32, ptr %out, i64 2
  store i32 %i.end, ptr %p2, align 4
  %p3 = getelementptr inbounds i32, ptr %out, i64 3
  store i32 %j.end, ptr %p3, align 4
  %p4 = getelementptr inbounds i32, ptr %out, i64 4
  store i32 %result, ptr %p4, align 4
  %p5 = getelementptr inbounds i32, ptr %out, i64 5
  store i32 %skips.end, ptr %p5, align 4
  ret void
}
