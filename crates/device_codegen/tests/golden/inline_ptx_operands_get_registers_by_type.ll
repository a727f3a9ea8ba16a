; f: f32, d: f64, h: 16 bits, r: 32 bits, l: 64 bits and pointers. x86 modifiers and clobbers go.

define void @kernel(ptr %p, ptr %q, i32 %s, i16 %h) section ".nvvm.kernel" {
start:
  %x = call float asm inteldialect "ld.global.nc.f32 ${0}, [${1}];", "=x,r"(ptr %p) #0, !srcloc !0
  %y = call i64 asm inteldialect "cvta.to.shared.u64 ${0:q}, ${1:q};", "=&r,r"(ptr %q) #1, !srcloc !0
  %two = call { float, i16 } asm sideeffect alignstack inteldialect "add.f32 ${0:x}, ${0:x}, ${2:x}; add.u16 ${1:x}, ${1:x}, ${3:x}; // $$ and ${3:x}4", "=&x,=&r,0,1,~{dirflag},~{fpsr},~{flags},~{memory}"(float %x, i16 %h) #2, !srcloc !0
  call void asm sideeffect inteldialect "prefetch.global.L2 [${1}]; // ${0:e}", "r,r,~{memory}"(i32 %s, ptr %p) #2
  %z = extractvalue { float, i16 } %two, 0
  store float %z, ptr %q, align 4
  store i64 %y, ptr %q, align 8
  ret void
}

attributes #0 = { nounwind memory(read) }
attributes #1 = { nounwind memory(none) }
attributes #2 = { nounwind }

!0 = !{i64 36537286795551}
