define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  call void asm sideeffect inteldialect "mov.b16 ${0};", "q"(i8 1)
  ret void
}
