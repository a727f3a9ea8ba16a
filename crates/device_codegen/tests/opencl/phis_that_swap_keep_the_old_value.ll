; run 1 groups of 1
; with 10 20 5
; gives 20 10 5 7
define void @swap(ptr %out) section ".nvvm.kernel" {
start:
  %second = getelementptr inbounds i32, ptr %out, i64 1
  %a0 = load i32, ptr %out, align 4
  %b0 = load i32, ptr %second, align 4
  %count.place = getelementptr inbounds i32, ptr %out, i64 2
  %count = load i32, ptr %count.place, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %start ], [ %i.next, %loop ]
  %a = phi i32 [ %a0, %start ], [ %b, %loop ]
  %b = phi i32 [ %b0, %start ], [ %a, %loop ]
  %last = phi i32 [ 3, %start ], [ %i, %loop ]
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %loop, label %end
end:
  ; after 5 iterations, 4 of them swapped twice: once more than an even number
  store i32 %b, ptr %out, align 4
  store i32 %a, ptr %second, align 4
  %fourth = getelementptr inbounds i32, ptr %out, i64 3
  %sum = add i32 %last, %i
  store i32 %sum, ptr %fourth, align 4
  ret void
}
