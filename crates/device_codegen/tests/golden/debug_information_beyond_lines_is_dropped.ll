; Variables, types and where values are: dropped. A loop does not say where it starts and ends. What no instruction
; mentions is not printed, and a function without a scope has no lines.

@COUNT = internal global i32 0, align 4, !dbg !20

define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" !dbg !4 {
start:
    #dbg_value(i32 %a, !8, !DIExpression(), !7)
  br label %loop, !dbg !7

loop:
  %i = phi i32 [ 0, %start ], [ %next, %loop ], !dbg !7
  %next = add i32 %i, 1, !dbg !7
  store volatile i32 %next, ptr @COUNT, align 4, !dbg !7
  %done = icmp eq i32 %next, %a, !dbg !7
  br i1 %done, label %end, label %loop, !dbg !7, !llvm.loop !12

end:
  call void @plain(ptr %out), !dbg !7
  ret void, !dbg !7
}

define internal void @plain(ptr %out) noinline {
start:
  store i32 1, ptr %out, align 4, !dbg !15
  ret void
}

!llvm.dbg.cu = !{!1}

!1 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !3, producer: "rustc", emissionKind: FullDebug, globals: !19)
!3 = !DIFile(filename: "src/lib.rs", directory: "/work")
!4 = distinct !DISubprogram(name: "kernel", scope: !17, file: !3, line: 3, type: !5, scopeLine: 3, spFlags: DISPFlagDefinition, unit: !1, templateParams: !18, retainedNodes: !18)
!5 = !DISubroutineType(types: !6)
!6 = !{null, !9}
!7 = !DILocation(line: 5, column: 9, scope: !4)
!8 = !DILocalVariable(name: "a", arg: 2, scope: !4, file: !3, line: 3, type: !9)
!9 = !DIBasicType(name: "u32", size: 32, encoding: DW_ATE_unsigned)
!10 = !DIDerivedType(tag: DW_TAG_pointer_type, name: "*mut u32", baseType: !9, size: 64)
!11 = !DICompositeType(tag: DW_TAG_structure_type, name: "Tile", file: !3, size: 64, flags: DIFlagPublic, elements: !18, identifier: "0123")
!12 = distinct !{!12, !7, !13, !14}
!13 = !DILocation(line: 9, column: 5, scope: !4)
!14 = !{!"llvm.loop.unroll.disable"}
!15 = !DILocation(line: 40, column: 5, scope: !16)
!16 = distinct !DISubprogram(name: "inlined", scope: !17, file: !3, line: 39, type: !5, spFlags: DISPFlagDefinition, unit: !1)
!17 = !DINamespace(name: "lib", scope: null)
!18 = !{}
!19 = !{!20}
!20 = !DIGlobalVariableExpression(var: !21, expr: !DIExpression())
!21 = distinct !DIGlobalVariable(name: "COUNT", scope: !17, file: !3, line: 1, type: !9, isLocal: true, isDefinition: true)
