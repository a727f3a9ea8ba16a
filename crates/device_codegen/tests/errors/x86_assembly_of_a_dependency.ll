define void @kernel(ptr %out) section ".nvvm.kernel" !dbg !0 {
start:
  %r = call float asm "sqrtss ${0}, ${0}", "=x,0"(float 2.000000e+00), !dbg !3
  store float %r, ptr %out, align 4
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!1 = distinct !DISubprogram(name: "sqrtf", linkageName: "_ZN4libm4math4arch6x86_645sqrtf17h0123456789abcdefE", file: !4, line: 20)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 21, column: 5, scope: !1, inlinedAt: !5)
!4 = !DIFile(filename: "cargo/registry/src/libm-0.2.16/src/math/arch/x86_64.rs", directory: "")
!5 = distinct !DILocation(line: 4, column: 9, scope: !0)
