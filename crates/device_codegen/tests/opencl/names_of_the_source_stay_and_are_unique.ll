; run 1 groups of 1
; with 1 2 3 4 5 6 7
; gives 2 4 6 8 10 12 14
; What has no name in the source is t; `local` is a word of OpenCL C.
define void @twice(ptr %out) section ".nvvm.kernel" {
start:
  %at0 = getelementptr inbounds i32, ptr %out, i64 0
  %k0.i.sroa.0.032 = load i32, ptr %at0, align 4
  %twice0 = add i32 %k0.i.sroa.0.032, %k0.i.sroa.0.032
  store i32 %twice0, ptr %at0, align 4
  %at1 = getelementptr inbounds i32, ptr %out, i64 1
  %k0 = load i32, ptr %at1, align 4
  %twice1 = add i32 %k0, %k0
  store i32 %twice1, ptr %at1, align 4
  %at2 = getelementptr inbounds i32, ptr %out, i64 2
  %_14.i.i = load i32, ptr %at2, align 4
  %twice2 = add i32 %_14.i.i, %_14.i.i
  store i32 %twice2, ptr %at2, align 4
  %at3 = getelementptr inbounds i32, ptr %out, i64 3
  %32 = load i32, ptr %at3, align 4
  %twice3 = add i32 %32, %32
  store i32 %twice3, ptr %at3, align 4
  %at4 = getelementptr inbounds i32, ptr %out, i64 4
  %local = load i32, ptr %at4, align 4
  %twice4 = add i32 %local, %local
  store i32 %twice4, ptr %at4, align 4
  %at5 = getelementptr inbounds i32, ptr %out, i64 5
  %.idx439.6 = load i32, ptr %at5, align 4
  %twice5 = add i32 %.idx439.6, %.idx439.6
  store i32 %twice5, ptr %at5, align 4
  %at6 = getelementptr inbounds i32, ptr %out, i64 6
  %33 = load i32, ptr %at6, align 4
  %twice6 = add i32 %33, %33
  store i32 %twice6, ptr %at6, align 4
  ret void
}
