; run 1 groups of 1
; with 0 1
; gives 0 1 0
; panics 1
define void @divide(ptr %out) section ".nvvm.kernel" !dbg !0 {
start:
  %divisor = load i32, ptr %out, align 4
  %is.zero = icmp eq i32 %divisor, 0, !dbg !3
  br i1 %is.zero, label %panic, label %go, !dbg !3
go:
  %quotient = udiv i32 12, %divisor, !dbg !3
  %target = getelementptr inbounds i32, ptr %out, i64 2
  store i32 %quotient, ptr %target, align 4
  ret void
panic:
  call void @_ZN4core9panicking11panic_const23panic_const_div_by_zero17h0123456789abcdefE(ptr null), !dbg !3
  unreachable
}

declare void @_ZN4core9panicking11panic_const23panic_const_div_by_zero17h0123456789abcdefE(ptr) noreturn

!0 = distinct !DISubprogram(name: "divide", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
