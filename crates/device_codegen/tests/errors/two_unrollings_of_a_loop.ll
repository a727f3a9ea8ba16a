define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  br label %loop

loop:
  call void @__nvvm_unroll(i32 2)
  call void @__nvvm_unroll(i32 4)
  %done = icmp eq i32 %a, 0
  br i1 %done, label %end, label %loop

end:
  ret void
}
declare void @__nvvm_unroll(i32)
