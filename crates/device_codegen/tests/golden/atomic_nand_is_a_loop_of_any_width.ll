define void @kernel(ptr %p, i32 %a, i64 %b) section ".nvvm.kernel" {
start:
  %x = atomicrmw nand ptr %p, i32 %a monotonic, align 4
  %y = atomicrmw nand ptr %p, i64 %b seq_cst, align 8
  store i32 %x, ptr %p, align 4
  store i64 %y, ptr %p, align 8
  ret void
}
