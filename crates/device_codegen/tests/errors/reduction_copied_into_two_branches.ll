declare i32 @__nvvm_warp_reduce_add(i32, i32)

define void @kernel(ptr %out, i1 %flag) section ".nvvm.kernel" !dbg !0 {
start:
  br i1 %flag, label %left, label %right
left:
  %left_sum = call i32 @__nvvm_warp_reduce_add(i32 -1, i32 1), !dbg !3
  store i32 1, ptr %out, align 4
  br label %end
right:
  %right_sum = call i32 @__nvvm_warp_reduce_add(i32 -1, i32 1), !dbg !3
  br label %end
end:
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
!4 = !DILocation(line: 6, column: 9, scope: !0)
