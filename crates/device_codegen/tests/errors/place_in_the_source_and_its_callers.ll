; A switch has its location on its last line, and Rust's own libraries are not the user's.
define void @kernel(ptr %out, half %a) section ".nvvm.kernel" !dbg !0 {
start:
  switch i32 1, label %other [
    i32 0, label %end
    i32 2, label %end
  ], !dbg !7

other:
  %r = frem half %a, %a, !dbg !8
  store half %r, ptr %out, align 2
  br label %end

end:
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!1 = distinct !DISubprogram(name: "rem", linkageName: "_ZN4core3ops5arith3Rem3rem17h0123456789abcdefE", file: !4, line: 20)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = distinct !DISubprogram(name: "angle", linkageName: "_ZN5maths5angle17h0123456789abcdefE", file: !5, line: 8)
!4 = !DIFile(filename: "library/core/src/ops/arith.rs", directory: "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860")
!5 = !DIFile(filename: "src/maths.rs", directory: "")
!6 = distinct !DILocation(line: 9, column: 13, scope: !3, inlinedAt: !9)
!7 = !DILocation(line: 5, column: 9, scope: !0)
!8 = !DILocation(line: 21, column: 5, scope: !1, inlinedAt: !6)
!9 = distinct !DILocation(line: 7, column: 17, scope: !0)
