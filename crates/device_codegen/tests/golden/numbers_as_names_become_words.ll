; LLVM demands that numbered values come in order, and casts come in between.

define void @kernel(ptr %0, i32 %1) section ".nvvm.kernel" {
  %3 = icmp eq i32 %1, 0
  br i1 %3, label %4, label %"a block"

4:
  %5 = add i32 %1, 7
  br label %"a block"

"a block":
  %"a value" = phi i32 [ %5, %4 ], [ 1, %2 ]
  %v5 = mul i32 %"a value", 3
  store i32 %v5, ptr %0, align 4
  ret void
}
