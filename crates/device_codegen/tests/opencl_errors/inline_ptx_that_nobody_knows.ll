define void @refused(ptr %out) section ".nvvm.kernel" {
start:
  call void asm sideeffect inteldialect "prefetch.global.L2 [${0:q}];", "r,~{memory}"(ptr %out)
  ret void
}
