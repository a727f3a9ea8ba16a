define void @refused(i64 %address) section ".nvvm.kernel" {
start:
  %pointer = inttoptr i64 %address to ptr
  store i32 1, ptr %pointer, align 4
  ret void
}
