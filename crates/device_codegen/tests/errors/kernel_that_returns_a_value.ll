define i32 @kernel() section ".nvvm.kernel" {
  ret i32 1
}
