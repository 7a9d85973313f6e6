--  SPDX-License-Identifier: Apache-2.0
--
--  Ada tasks, one after another and some at a time. GNAT's runtime sets the scheduling parameters of each that it creates,
--  to those that the task has already.
with Ada.Text_IO;

procedure Tasks is
   protected Sum is
      procedure Add (Value : Integer);
      function Value return Integer;
   private
      Total : Integer := 0;
   end Sum;

   protected body Sum is
      procedure Add (Value : Integer) is
      begin
         Total := Total + Value;
      end Add;

      function Value return Integer is (Total);
   end Sum;

   task type Worker is
      entry Start (Value : Integer);
   end Worker;

   task body Worker is
      Mine : Integer;
   begin
      accept Start (Value : Integer) do
         Mine := Value;
      end Start;
      Sum.Add (Mine);
   end Worker;
begin
   for Round in 1 .. 100 loop
      declare
         Crew : array (1 .. 3) of Worker;
      begin
         for I in Crew'Range loop
            Crew (I).Start (I);
         end loop;
      end;
   end loop;
   Ada.Text_IO.Put_Line (Integer'Image (Sum.Value));
end Tasks;
