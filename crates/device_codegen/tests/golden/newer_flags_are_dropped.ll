; nuw, nusw, nneg, disjoint, samesign: promises that LLVM 7 does not know.

define void @kernel(ptr %out, i64 %a, i32 %b) section ".nvvm.kernel" {
start:
  %narrow = trunc nuw nsw i64 %a to i32
  %wide = zext nneg i32 %b to i64
  %either = or disjoint i32 %narrow, %b
  %less = icmp samesign ult i32 %either, %b
  %place = getelementptr inbounds nuw i32, ptr %out, i64 %wide
  %next = getelementptr nusw i8, ptr %place, i64 4
  %real = uitofp nneg i32 %either to float
  %chosen = select nnan i1 %less, float %real, float 1.000000e+00
  %sum = fadd contract float %chosen, %real
  store float %sum, ptr %next, align 4
  ret void
}
