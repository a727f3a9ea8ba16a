; Loads through pointers that come from the mark alone, also by a loop's phi and a select. Not those
; through a pointer that may come from elsewhere, and not the loads of what is marked itself.
define void @kernel(ptr noundef %a, ptr noundef %out, i1 noundef %second) section ".nvvm.kernel" {
start:
  %marked = call ptr @__nvvm_read_only(ptr noundef %a)
  %next = getelementptr inbounds i8, ptr %marked, i64 8
  %either = select i1 %second, ptr %next, ptr %marked
  %mixed = select i1 %second, ptr %next, ptr %out
  br label %loop

loop:
  %at = phi ptr [ %either, %start ], [ %further, %loop ]
  %count = phi i64 [ 0, %start ], [ %increased, %loop ]
  %x = load float, ptr %at, align 4
  %y = load float, ptr %mixed, align 4
  %z = load float, ptr %a, align 4
  %partial = fadd float %x, %y
  %sum = fadd float %partial, %z
  store float %sum, ptr %out, align 4
  %further = getelementptr inbounds i8, ptr %at, i64 4
  %increased = add i64 %count, 1
  %done = icmp eq i64 %increased, 7
  br i1 %done, label %end, label %loop

end:
  ret void
}

declare ptr @__nvvm_read_only(ptr noundef) unnamed_addr
