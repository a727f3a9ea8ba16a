; run 1 groups of 1
; gives 0 0x80000000 0x3fc00000 0x3dcccccd 1 0x7fc00000 0xff800000 0x7fa00000 0x9999999a 0x3fb99999 1 0 1 0x7ff80000
define void @store(ptr %out) section ".nvvm.kernel" {
start:
  %at0 = getelementptr inbounds i8, ptr %out, i64 0
  store float 0.000000e+00, ptr %at0, align 4
  %at1 = getelementptr inbounds i8, ptr %out, i64 4
  store float -0.000000e+00, ptr %at1, align 4
  %at2 = getelementptr inbounds i8, ptr %out, i64 8
  store float 1.500000e+00, ptr %at2, align 4
  %at3 = getelementptr inbounds i8, ptr %out, i64 12
  store float 0x3FB99999A0000000, ptr %at3, align 4
  %at4 = getelementptr inbounds i8, ptr %out, i64 16
  store float 0x36A0000000000000, ptr %at4, align 4
  %at5 = getelementptr inbounds i8, ptr %out, i64 20
  store float 0x7FF8000000000000, ptr %at5, align 4
  %at6 = getelementptr inbounds i8, ptr %out, i64 24
  store float 0xFFF0000000000000, ptr %at6, align 4
  %at7 = getelementptr inbounds i8, ptr %out, i64 28
  store float 0x7FF4000000000000, ptr %at7, align 4
  %at8 = getelementptr inbounds i8, ptr %out, i64 32
  store double 1.000000e-01, ptr %at8, align 8
  %at9 = getelementptr inbounds i8, ptr %out, i64 40
  store double 0x0000000000000001, ptr %at9, align 8
  %at10 = getelementptr inbounds i8, ptr %out, i64 48
  store double 0x7FF8000000000001, ptr %at10, align 8
  ret void
}
