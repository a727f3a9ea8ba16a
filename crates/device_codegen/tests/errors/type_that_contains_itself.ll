%A = type { i32, %A }

define void @kernel(%A %a) section ".nvvm.kernel" {
  ret void
}
