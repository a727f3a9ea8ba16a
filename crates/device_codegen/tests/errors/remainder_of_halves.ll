define void @kernel(ptr %x) section ".nvvm.kernel" {
start:
  %a = load half, ptr %x, align 2
  %b = frem half %a, %a
  store half %b, ptr %x, align 2
  ret void
}
