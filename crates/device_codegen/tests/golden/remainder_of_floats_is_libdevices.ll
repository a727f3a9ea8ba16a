define void @kernel(ptr %x, ptr %y) section ".nvvm.kernel" {
start:
  %a = load float, ptr %x, align 4
  %b = load double, ptr %y, align 8
  %c = frem float %a, 3.000000e+00
  %d = frem double 5.000000e+00, %b
  store float %c, ptr %x, align 4
  store double %d, ptr %y, align 8
  ret void
}
