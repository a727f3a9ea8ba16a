; run 1 groups of 1
; with 0x3f800000 0x40000000 0x40400000 0x40800000
; gives 0x3f800000 0x40000000 0x40400000 0x40800000 0x40800000 0x40400000 0x40000000 0x3f800000
define void @reverse4(ptr %out) section ".nvvm.kernel" {
start:
  %v = call { float, float, float, float } asm sideeffect inteldialect "ld.global.v4.f32 {${0:x}, ${1:x}, ${2:x}, ${3:x}}, [${4:q}];", "=x,=x,=x,=x,r,~{memory}"(ptr %out)
  %a = extractvalue { float, float, float, float } %v, 0
  %b = extractvalue { float, float, float, float } %v, 1
  %c = extractvalue { float, float, float, float } %v, 2
  %d = extractvalue { float, float, float, float } %v, 3
  %next = getelementptr inbounds float, ptr %out, i64 4
  call void asm sideeffect inteldialect "st.global.v4.f32 [${0:q}], {${1:x}, ${2:x}, ${3:x}, ${4:x}};", "r,x,x,x,x,~{memory}"(ptr %next, float %d, float %c, float %b, float %a)
  ret void
}
