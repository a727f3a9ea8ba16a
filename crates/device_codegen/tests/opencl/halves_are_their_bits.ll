; run 1 groups of 1
; with 0x3555 0x3f800fff 0x3f801000 0x3f803000 0x33000001
; gives 0x3555 0x3f800fff 0x3f801000 0x3f803000 0x33000001 0x3eaaa000 0x3c00 0x3c00 0x3c02 1
; A third; one and just less than half of a last place, exactly half, one and a half; the smallest
; number that does not become zero.
declare <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float>, i32)

define void @halves(ptr %out) section ".nvvm.kernel" {
start:
  %bits = load i16, ptr %out, align 2
  %half = bitcast i16 %bits to half
  %float = fpext half %half to float
  %p1 = getelementptr inbounds float, ptr %out, i64 1
  %four = load <4 x float>, ptr %p1, align 4
  %rounded = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %four, i32 0)
  %p5 = getelementptr inbounds float, ptr %out, i64 5
  store float %float, ptr %p5, align 4
  %a = extractelement <8 x i16> %rounded, i64 0
  %a.wide = zext i16 %a to i32
  %p6 = getelementptr inbounds i32, ptr %out, i64 6
  store i32 %a.wide, ptr %p6, align 4
  %b = extractelement <8 x i16> %rounded, i64 1
  %b.wide = zext i16 %b to i32
  %p7 = getelementptr inbounds i32, ptr %out, i64 7
  store i32 %b.wide, ptr %p7, align 4
  %c = extractelement <8 x i16> %rounded, i64 2
  %c.wide = zext i16 %c to i32
  %p8 = getelementptr inbounds i32, ptr %out, i64 8
  store i32 %c.wide, ptr %p8, align 4
  %d = extractelement <8 x i16> %rounded, i64 3
  %d.wide = zext i16 %d to i32
  %p9 = getelementptr inbounds i32, ptr %out, i64 9
  store i32 %d.wide, ptr %p9, align 4
  ret void
}
