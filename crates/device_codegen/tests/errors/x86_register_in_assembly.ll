define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %r = call i32 asm sideeffect inteldialect "mov.u32 $0, 7;", "={ax},~{dirflag},~{fpsr},~{flags}"()
  store i32 %r, ptr %out, align 4
  ret void
}
