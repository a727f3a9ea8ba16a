declare void @__nvvm_block_barrier()

; Two barriers of the source, one in each branch, then one in each iteration of a loop that was unrolled.
define void @kernel(ptr %out, i1 %flag) section ".nvvm.kernel" !dbg !0 {
start:
  br i1 %flag, label %left, label %right
left:
  call void @__nvvm_block_barrier(), !dbg !3
  store i32 1, ptr %out, align 4
  br label %loop
right:
  call void @__nvvm_block_barrier(), !dbg !4
  br label %loop
loop:
  call void @__nvvm_block_barrier(), !dbg !5
  br i1 %flag, label %next, label %loop
next:
  call void @__nvvm_block_barrier(), !dbg !5
  ret void
}

; An empty `asm!` behind a call is dropped; one that orders memory is kept.
define void @empty() section ".nvvm.kernel" {
start:
  call void @__nvvm_block_barrier()
  call void asm sideeffect inteldialect "", ""()
  call void asm sideeffect inteldialect "", "~{memory}"()
  ret void
}

!0 = distinct !DISubprogram(name: "kernel", file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "")
!3 = !DILocation(line: 5, column: 9, scope: !0)
!4 = !DILocation(line: 6, column: 9, scope: !0)
!5 = !DILocation(line: 8, column: 9, scope: !0)
